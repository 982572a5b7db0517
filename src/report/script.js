"use strict";
(() => {
  const find = (selector) => document.querySelector(selector);
  const island = (id) => JSON.parse(document.getElementById(id)?.textContent ?? "null");

  /** An element with a class, text or children. Text is text, whatever it says. */
  const make = (tag, className = "", ...content) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...content.filter((part) => part !== null));
    return element;
  };

  /** A number to three digits, with a minus sign. */
  const number = (value) => {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    const text = size === 0 ? "0" : size < 1e-3 || size >= 1e6 ? value.toExponential(1) : String(+value.toPrecision(size >= 100 ? 4 : 3));
    return text.replaceAll("-", "−");
  };
  const written = (value, share) => (share ? `${(100 * value).toFixed(1).replace("-", "−")} %` : number(value));

  // Characters that show nothing, or move what is shown around them, are spelt out.
  const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
  const visible = (text) => {
    const parts = [];
    let from = 0;
    for (const match of text.matchAll(HIDDEN)) {
      const code = match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
      parts.push(text.slice(from, match.index), make("span", "escape", `‹${code}›`));
      from = match.index + 1;
    }
    parts.push(text.slice(from));
    return parts;
  };

  const LONGEST = 12000;
  /** Adds text; of a very long one the beginning, and a button for the rest. */
  const put = (parent, text, dress = visible) => {
    parent.dir = "ltr";
    parent.append(...dress(text.slice(0, LONGEST)));
    if (text.length <= LONGEST) return parent;
    const more = make("button", "", `show all ${text.length.toLocaleString("en")} characters`);
    more.onclick = () => parent.replaceChildren(...dress(text));
    parent.append(make("br"), more);
    return parent;
  };

  /** A reply with its thought and its answer in their colours: by its tags alone, as it was sampled. */
  const reply = (text) => {
    let role = "";
    return text.split(/(<\/?think>|<\/?answer>)/).flatMap((part) => {
      if (!/^<\/?(think|answer)>$/.test(part)) return part ? [make("span", role, ...visible(part))] : [];
      role = part === "<think>" ? "thought" : part === "<answer>" ? "answer" : "";
      return [make("span", "tag", part)];
    });
  };

  // Charts: a line under the pointer, and what every curve says there.
  const tip = find("#tip");
  const show = (event, head, lines) => {
    tip.replaceChildren(make("b", "", head), ...lines.map(([name, value, colour]) =>
      make("div", "", make("span", colour === undefined ? "" : `f${colour}`, name), make("span", "", value))));
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - height - 8))}px`;
  };
  const hide = () => { tip.hidden = true; };

  const charts = island("charts") ?? [];
  const nearest = (steps, step) => steps.reduce((best, other, at) => Math.abs(other - step) < Math.abs(steps[best] - step) ? at : best, 0);
  for (const svg of document.querySelectorAll("svg[data-chart]")) {
    const { first, last, left, width, chart } = svg.dataset;
    const cross = document.createElementNS("http://www.w3.org/2000/svg", "path");
    cross.setAttribute("class", "cross");
    svg.onpointermove = (event) => {
      const box = svg.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      const step = +first + ((at - left) / width) * (last - first);
      const curves = charts[chart];
      const all = curves.flatMap((curve) => curve.steps);
      if (!all.length) return;
      const here = all[nearest(all, step)];
      cross.setAttribute("d", `M${+left + ((here - first) / (last - first)) * width} 8V156`);
      svg.append(cross);
      show(event, `step ${here}`, curves.map((curve) => {
        const place = nearest(curve.steps, here);
        const other = curve.steps[place] === here ? "" : ` (step ${curve.steps[place]})`;
        return [curve.name, written(curve.values[place], curve.share) + other, curve.colour];
      }));
    };
    svg.onpointerleave = () => { cross.remove(); hide(); };
  }

  // Filter outcomes: a cell under the pointer; a click asks the viewer for its episodes.
  const heat = find("#heat");
  const outcomes = island("outcomes") ?? [];
  const cell = (event) => {
    const box = heat.getBoundingClientRect();
    const across = Math.floor(((event.clientX - box.left) / box.width) * outcomes.length);
    const [step, groups] = outcomes[Math.max(0, Math.min(across, outcomes.length - 1))];
    const group = Math.floor(((event.clientY - box.top) / box.height) * heat.viewBox.baseVal.height);
    return { step, group, found: groups[group] };
  };

  // The list of episodes.
  const entries = island("episodes");
  if (!entries) return;
  const vocabulary = island("vocabulary") ?? {};
  const COLUMNS = [
    ["step", "Step"], ["group", "Group"], ["member", "Member"], ["score", "Reward"], ["advantage", "Advantage"], ["mi", "MI"],
    ["end", "End"], ["kept", "Verdict"], ["errors", "Errors"], ["turns", "Turns"], ["tokens", "Tokens"],
    ["env", "Environment"], ["index", "Task"],
  ];
  const WORDS = new Set(["env", "end", "kept"]);
  const PAGE = 100;
  const episodes = entries.map((entry) => Object.fromEntries(COLUMNS.map(([key], at) => [key, entry[at]])));
  const verdict = (kept) => (kept === null ? "–" : kept ? "kept" : "dropped");
  const form = find("#filters");
  const body = find("#list tbody");
  const detail = find("#episode");
  let rows = episodes;
  let sorted = { key: "step", falling: false };
  let chosen = null;
  let sideBySide = false;
  let colouring = "role";

  const options = (name, values) => values.forEach((value) => {
    const option = make("option", "", String(value));
    option.value = value;
    form.elements[name].append(option);
  });
  const different = (key) => [...new Set(episodes.map((episode) => episode[key]))];
  options("step", different("step"));
  options("group", different("group").sort((a, b) => a - b));
  options("end", different("end").sort());

  const compare = (a, b) => {
    if (a === b) return 0;
    if (a === null) return 1;
    if (b === null) return -1;
    return (a < b ? -1 : 1) * (sorted.falling ? -1 : 1);
  };
  const select = () => {
    const wanted = Object.fromEntries(new FormData(form));
    const is = (name, value) => wanted[name] === "" || wanted[name] === String(value);
    rows = episodes.filter((episode) =>
      is("step", episode.step) && is("group", episode.group) && is("end", episode.end) && is("kept", episode.kept) &&
      (wanted.errors === "" || (wanted.errors === "some") === episode.errors > 0) &&
      (wanted.least === "" || episode.score >= +wanted.least) && (wanted.most === "" || episode.score <= +wanted.most));
    rows.sort((a, b) => compare(a[sorted.key], b[sorted.key]));
    find("#count").textContent = `${rows.length.toLocaleString("en")} of ${episodes.length.toLocaleString("en")} episodes`;
    list();
  };

  const heads = COLUMNS.map(([key, name]) => {
    const button = make("button", "", name);
    button.type = "button";
    button.onclick = () => {
      sorted = { key, falling: sorted.key === key && !sorted.falling };
      select();
    };
    const head = make("th", WORDS.has(key) ? "" : "number", button);
    head.scope = "col";
    find("#list thead tr").append(head);
    return [key, name, head, button];
  });

  let page = 0;
  const list = () => {
    const at = rows.indexOf(chosen);
    if (at >= 0) page = Math.floor(at / PAGE);
    page = Math.max(0, Math.min(page, Math.ceil(rows.length / PAGE) - 1));
    const shown = rows.slice(page * PAGE, (page + 1) * PAGE);
    for (const [key, name, head, button] of heads) {
      const own = sorted.key === key;
      head.setAttribute("aria-sort", own ? (sorted.falling ? "descending" : "ascending") : "none");
      button.textContent = own ? `${name} ${sorted.falling ? "↓" : "↑"}` : name;
    }
    body.replaceChildren(...shown.map((episode) => {
      const cells = COLUMNS.map(([key]) => {
        const value = episode[key];
        const text = key === "kept" ? verdict(value) : WORDS.has(key) ? value : key === "index" ? String(value) : number(value);
        const sign = key === "score" || key === "advantage" ? (value > 0 ? " up" : value < 0 ? " down" : "") : "";
        return make("td", (WORDS.has(key) ? "" : "number") + sign, text);
      });
      const row = make("tr", "", ...cells);
      row.setAttribute("aria-selected", episode === chosen);
      row.onclick = () => open(episode);
      return row;
    }));
    find("#page").textContent = rows.length ? `${page * PAGE + 1}–${page * PAGE + shown.length} of ${rows.length.toLocaleString("en")}` : "none";
    find("#before").disabled = page === 0;
    find("#after").disabled = (page + 1) * PAGE >= rows.length;
    const row = body.querySelector('[aria-selected="true"]');
    const frame = find(".list");
    if (row) frame.scrollTop += row.getBoundingClientRect().top - frame.getBoundingClientRect().top - frame.clientHeight / 2;
  };
  const turnPage = (by) => {
    page += by;
    const kept = chosen;
    chosen = null;
    list();
    chosen = kept;
    find(".list").scrollTop = 0;
  };
  find("#before").onclick = () => turnPage(-1);
  find("#after").onclick = () => turnPage(1);

  // Records: unpacked when they are asked for.
  const inflate = async (text) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Response(stream).text();
  };
  const unpacked = new Map();
  const unpack = async (step, group) => {
    const name = `pack-${step}-${group}`;
    if (!unpacked.has(name)) {
      const pack = document.getElementById(name);
      const [records, credit] = await Promise.all([inflate(pack.textContent), inflate(pack.dataset.credit)]);
      unpacked.set(name, {
        records: records.split("\n").filter((line) => line).map((line) => JSON.parse(line)),
        credit: JSON.parse(credit),
      });
    }
    return unpacked.get(name);
  };

  /** Tokens of a turn in the order of its row, with what is known of each. */
  const tokens = (record, turn, rows) => {
    const row = rows.find((row) => row.member === record.member && row.turns.includes(turn.turn));
    let at = 0;
    for (const before of row ? row.turns : []) {
      if (before === turn.turn) break;
      const { prompt, response } = record.turns[before - 1];
      at += (prompt?.length ?? 0) + (response?.length ?? 0);
    }
    const [start, end] = turn.reasoning ?? [0, 0];
    const word = (id, place, role, own) => {
      const text = vocabulary[id];
      const where = at + place;
      return {
        text: text === undefined || text === "" ? `[${id}]` : text, id,
        role: /^<\|.*\|>$/.test(text ?? "") ? `${role} special` : role,
        mask: row?.mask[where] ?? 0, advantage: row ? row.advantages[where] : null, weight: row ? row.weights[where] : null,
        logprob: own === undefined ? null : turn.logprobs?.[own] ?? null,
        entropy: own === undefined ? null : turn.entropies?.[own] ?? null,
        reference: own === undefined ? null : turn.ref_logprobs?.[own] ?? null,
        value: own === undefined ? null : turn.values?.[own] ?? null,
      };
    };
    const prompt = (turn.prompt ?? []).map((id, place) => word(id, place, "prompt"));
    const response = (turn.response ?? []).map((id, own) =>
      word(id, prompt.length + own, own >= start && own < end ? "thought" : "answer", own));
    return [...prompt, ...response];
  };

  const told = (token) => {
    const facts = [JSON.stringify(token.text), `id ${token.id}`, token.role.split(" ")[0], token.mask ? "learned from" : "masked"];
    const add = (name, value) => value !== null && facts.push(`${name} ${number(value)}`);
    add("advantage", token.advantage);
    add("log-prob", token.logprob);
    add("entropy", token.entropy);
    add("reference", token.reference);
    add("value", token.value);
    return facts.join(" · ");
  };

  const MOST = 4000;
  const strip = (record, turn, rows) => {
    const all = tokens(record, turn, rows);
    if (!all.length) return null;
    const reading = make("div", "reading", "Point at a token, or move with ← →.");
    const element = make("div", "strip");
    element.tabIndex = 0;
    element.setAttribute("role", "group");
    element.setAttribute("aria-label", `Tokens of turn ${turn.turn}`);
    reading.setAttribute("aria-live", "polite");
    const largest = (of) => Math.max(1e-12, ...all.slice(0, MOST).map((token) => Math.abs(of(token) ?? 0)));
    const scale = { advantage: largest((t) => t.advantage), logprob: largest((t) => t.logprob), entropy: largest((t) => t.entropy) };
    const dress = (token, at) => {
      const text = token.text.replaceAll("\n", "↵");
      const span = make("span", `${token.role}${token.mask ? " mask" : ""}`, ...visible(text));
      const value = token[colouring];
      if (colouring !== "role" && value) {
        const colour = colouring === "advantage" ? (value > 0 ? "--good" : "--bad") : "--c1";
        span.style.background = `color-mix(in srgb, var(${colour}) ${Math.round(55 * Math.abs(value) / scale[colouring])}%, transparent)`;
      }
      span.dataset.at = at;
      return span;
    };
    element.append(...all.slice(0, MOST).map(dress));
    if (all.length > MOST) element.append(make("i", "", ` and ${all.length - MOST} more tokens`));
    let here = -1;
    const go = (at) => {
      element.children[here]?.classList.remove("here");
      here = Math.max(0, Math.min(at, Math.min(all.length, MOST) - 1));
      element.children[here].classList.add("here");
      reading.textContent = told(all[here]);
    };
    element.onpointerover = (event) => {
      const at = event.target.closest("[data-at]")?.dataset.at;
      if (at !== undefined) reading.textContent = told(all[at]);
    };
    element.onkeydown = (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by) { event.preventDefault(); go(here + by); }
    };
    return make("div", "", element, reading);
  };

  const signed = (value) => make("b", value > 0 ? "up" : value < 0 ? "down" : "", number(value));
  const chips = (actions) => actions.flatMap((action) => [put(make("span", "chip"), action), " "]);

  /** What a turn said and did. */
  const exchange = (turn, tag) => {
    const head = make("div", "head", make(tag, "", `Turn ${turn.turn}`), make("span", "", "reward ", signed(turn.reward)));
    if (turn.penalty) head.append(make("span", "", "penalty ", signed(turn.penalty)));
    if (!turn.valid) head.append(make("span", "wrong", "not a legal answer"));
    if (!turn.effective) head.append(make("span", "", "changed nothing"));
    for (const [name, value] of Object.entries(turn.metrics ?? {})) head.append(make("span", "", `${name} ${number(value)}`));
    const actions = make("div", "actions", "proposed ", ...(turn.actions.length ? chips(turn.actions) : ["nothing "]),
      "→ executed ", ...(turn.executed.length ? chips(turn.executed) : ["nothing"]));
    return make("section", "turn", head, make("div", "exchange",
      put(make("pre", "board"), turn.observation || turn.anchor || " "),
      make("div", "", put(make("div", "said"), turn.text, reply), actions)));
  };

  const entry = ({ step, group, member }) =>
    episodes.find((episode) => episode.step === step && episode.group === group && episode.member === member);

  const choice = (name, pressed, act) => {
    const button = make("button", "", name);
    button.type = "button";
    button.setAttribute("aria-pressed", pressed);
    button.onclick = act;
    return button;
  };

  const draw = (episode, { records, credit }) => {
    const record = records.find((record) => record.member === episode.member);
    const { task } = record;
    const group = credit.group;
    const facts = make("div", "bar",
      make("span", "", `${task.env}, ${task.split} task ${task.index}`), make("span", "", `ended ${record.end}`),
      make("span", "", "reward ", signed(episode.score)));
    if (episode.advantage !== null) facts.append(make("span", "", "advantage ", signed(episode.advantage)));
    if (group) {
      facts.append(make("span", "", `group mean ${number(group.mean)}, deviation ${number(group.std)}`));
      facts.append(make("span", group.kept ? "" : "wrong", group.kept ? "kept by the filter" : `dropped by the filter: ${group.reason}`));
    }
    const members = make("div", "bar", "Members ", ...records.map((other) =>
      choice(`${other.member}: ${number(entry(other).score)}`, other === record && !sideBySide, () => {
        sideBySide = false;
        open(entry(other));
      })), choice("side by side", sideBySide, () => { sideBySide = !sideBySide; open(episode); }));
    const title = make("h3", "", `Step ${episode.step}, group ${episode.group}, member ${episode.member}`);
    if (sideBySide) {
      const columns = records.map((other) => make("div", "",
        make("h4", "", `Member ${other.member}`), make("p", "note", "reward ", signed(entry(other).score), ` · ${other.end}`),
        ...other.turns.map((turn) => exchange(turn, "h5"))));
      return [title, facts, members, make("div", "members", ...columns)];
    }
    const colour = make("select", "", ...["role", "advantage", "logprob", "entropy"].map((name) => make("option", "", name)));
    colour.value = colouring;
    colour.onchange = () => { colouring = colour.value; open(episode); };
    const turns = record.turns.map((turn) => {
      const section = exchange(turn, "h4");
      section.querySelector(".actions").after(strip(record, turn, credit.rows) ?? "");
      return section;
    });
    return [title, facts, members, make("div", "bar", make("label", "", "Colour tokens by ", colour),
      make("span", "", "underlined: learned from")), ...turns];
  };

  const open = async (episode) => {
    chosen = episode;
    list();
    try {
      const pack = await unpack(episode.step, episode.group);
      if (chosen === episode) detail.replaceChildren(...draw(episode, pack));
    } catch (error) {
      detail.replaceChildren(make("p", "wrong", `These records do not unpack: ${error.message}`));
    }
  };

  if (heat) {
    heat.onpointermove = (event) => {
      const { step, group, found } = cell(event);
      if (found) show(event, `step ${step}, group ${group}`, [["score", found[0]], ["verdict", found[1] ? `dropped: ${found[1]}` : "kept"]]);
    };
    heat.onpointerleave = hide;
    heat.onclick = (event) => {
      const { step, group } = cell(event);
      const first = episodes.find((episode) => episode.step === step && episode.group === group);
      if (!first) return show(event, `step ${step}, group ${group}`, [["not in this page", ""]]);
      form.reset();
      form.elements.step.value = step;
      form.elements.group.value = group;
      select();
      open(first);
      find("#viewer").scrollIntoView();
    };
  }

  form.oninput = select;
  form.onsubmit = (event) => event.preventDefault();
  form.onreset = () => setTimeout(select);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const by = { j: 1, k: -1 }[event.key];
    if (by && rows.length) {
      const at = rows.indexOf(chosen);
      open(rows[at < 0 ? 0 : Math.max(0, Math.min(at + by, rows.length - 1))]);
    } else if (event.key === "g" && chosen) {
      sideBySide = !sideBySide;
      open(chosen);
    }
  });
  select();
})();
