"""Reads a report as a person does, in headless Chromium over its debugging pipe. Python's own library is enough.

    browse.py --hostile FILE   writes episodes of step 201 whose words try to leave the page
    browse.py REPORT           opens the report and holds it to its promises
"""

import json
import os
import subprocess
import sys
import tempfile
import time

BYTES = 5_000_000
SECONDS = 2.0
HOSTILE = [
    "</script><script>document.title = 'taken'</script>",
    "<!-- --><img src='https://example.com/x.png' onerror=\"document.title='taken'\">",
    "\u202edesrever\u2066 \u0000 \u001b[31m \u007f \u2028 \ufeff",
    "a<b" * 100_000,
]


def hostile(path):
    task = {"env": "sokoban", "epoch": 1, "split": "train", "index": 1}
    with open(path, "w", encoding="utf-8") as file:
        for member, text in enumerate(HOSTILE):
            turn = {"turn": 1, "observation": text, "text": text, "actions": [text], "executed": [text], "reward": member}
            record = {"schema": "starpo.episode/1", "step": 201, "group": 0, "member": member, "task": task}
            file.write(json.dumps(record | {"turns": [turn], "end": "failed"}) + "\n")


class Page:
    """A tab, spoken to in JSON over two pipes (--remote-debugging-pipe): Chromium reads 3 and writes 4."""

    def __init__(self, folder, width):
        to_it, ours = os.pipe()
        theirs, from_it = os.pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={folder}"]
        flags.append("about:blank")
        command = f'exec chromium "$@" 3<&{to_it} 4>&{from_it} 2>/dev/null'
        self.process = subprocess.Popen(["bash", "-c", command, "chromium", *flags], pass_fds=(to_it, from_it))
        os.close(to_it)
        os.close(from_it)
        self.out, self.into = os.fdopen(ours, "wb", 0), os.fdopen(theirs, "rb")
        self.calls, self.events, self.session = 0, [], None
        tabs = self.call("Target.getTargets")["targetInfos"]
        tab = next(tab["targetId"] for tab in tabs if tab["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Network", "Log"]:
            self.call(f"{domain}.enable")
        phone = width < 500
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=phone)

    def read(self):
        message = bytearray()
        while (byte := self.into.read(1)) != b"\0":
            if not byte:
                sys.exit("Chromium ended")
            message += byte
        return json.loads(message)

    def call(self, method, **params):
        self.calls += 1
        message = {"id": self.calls, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.out.write(json.dumps(message).encode() + b"\0")
        while (answer := self.read()).get("id") != self.calls:
            self.events.append(answer)
        if "error" in answer:
            sys.exit(f"{method}: {answer['error']}")
        return answer["result"]

    def value(self, script):
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            sys.exit(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def until(self, script):
        deadline = time.monotonic() + 10
        while not self.value(script):
            if time.monotonic() > deadline:
                sys.exit(f"never came true: {script}")
            time.sleep(0.02)

    def key(self, key):
        for kind in ["keyDown", "keyUp"]:
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=key if kind == "keyDown" else "")

    def open(self, url):
        self.events.clear()
        start = time.monotonic()
        self.call("Page.navigate", url=url)
        self.until("document.querySelectorAll('#list tbody tr').length > 0")
        return time.monotonic() - start

    def said(self, *methods):
        return [event["params"] for event in self.events if event.get("method") in methods]


def holds(fact, words):
    print(("ok    " if fact else "NOT   ") + words)
    if not fact:
        sys.exit(1)


def choose(page, name, value):
    page.value(f"""(() => {{ const field = document.querySelector('#filters').elements['{name}'];
        field.value = '{value}'; field.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()""")


COLUMN = """[...document.querySelectorAll('#list tbody tr')].map((row) => row.cells[%d].textContent)"""
SELECTED = "document.querySelector('#list [aria-selected=true]')"
HEADING = "(document.querySelector('#episode h3')?.textContent ?? '')"


def read(page):
    """Filters, sorts, and goes through episodes by keyboard."""
    every = page.value("document.querySelector('#count').textContent")
    choose(page, "step", 1)
    holds(set(page.value(COLUMN % 0)) == {"1"}, "the filter by step leaves that step alone")
    holds(page.value("document.querySelector('#count').textContent") != every, "and says how many are left")
    for column, name in [(4, "Advantage"), (5, "MI")]:
        script = f"[...document.querySelectorAll('#list thead button')][{column}].click()"
        page.value(script)
        numbers = [float(text.replace("−", "-")) for text in page.value(COLUMN % column) if text != "–"]
        holds(numbers == sorted(numbers) and len(set(numbers)) > 1, f"a click sorts by {name}")
        sort = page.value(f"document.querySelectorAll('#list th')[{column}].ariaSort")
        holds(sort == "ascending", "and the head says so")
    choose(page, "kept", "true")
    for _ in range(2):
        page.key("j")
    page.until(f"{HEADING} !== '' && {SELECTED}?.rowIndex === 2")
    page.key("k")
    page.until(f"{SELECTED}?.rowIndex === 1")
    cells = page.value(f"[...{SELECTED}.cells].slice(0, 3).map((cell) => cell.textContent)")
    page.until(f"{HEADING} === 'Step {cells[0]}, group {cells[1]}, member {cells[2]}'")
    holds(page.value("document.querySelectorAll('#episode .strip .mask').length") > 0, "j and k open episodes, masks shown")
    page.value("document.querySelector('#episode .strip').focus()")
    page.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight")
    reading = page.value("document.querySelector('#episode .reading').textContent")
    holds("advantage" in reading and "masked" in reading, f"a token tells of itself: {reading}")
    members = page.value("document.querySelectorAll('#episode .bar button').length") - 1
    page.key("g")
    page.until("!!document.querySelector('#episode .members')")
    holds(page.value("document.querySelectorAll('.members > div').length") == members, "g puts members side by side")
    page.key("g")
    page.until("!document.querySelector('#episode .members')")


def survive(page):
    """Reads what a hostile model wrote."""
    title = page.value("document.title")
    page.value("document.querySelector('#filters').reset()")
    choose(page, "step", 201)
    page.value("document.querySelectorAll('#list thead button')[2].click()")
    for member, text in enumerate(HOSTILE):
        page.key("j")
        page.until(f"{HEADING} === 'Step 201, group 0, member {member}'")
        shown = page.value("document.querySelector('#episode .said').textContent")
        holds(shown[:6] == text[:6] or "‹202E›desrever" in shown, f"hostile words are words: {shown[:40]!r}")
    holds(page.value("document.title") == title, "and do nothing")
    holds(page.value("document.images.length + document.querySelectorAll('#episode script').length") == 0, "and make nothing")


def main(path):
    size = os.path.getsize(path)
    holds(size < BYTES, f"{size / 1e6:.1f} MB, under {BYTES / 1e6:.0f}")
    url = "file://" + os.path.abspath(path)
    for width in [1280, 400]:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            page = Page(folder, width)
            seconds = page.open(url)
            holds(seconds < SECONDS, f"{width} pixels: opens in {seconds:.2f} s, under {SECONDS:.0f}")
            holds(page.value("document.documentElement.scrollWidth") <= width, "nothing stands out to the right")
            unnamed = "[...document.querySelectorAll('svg:not([aria-hidden]), select, input, table')].filter((e) =>"
            unnamed += " !e.ariaLabel && !e.closest('label') && !e.querySelector('thead')).length"
            holds(page.value(unnamed) == 0, "figures, fields and tables have names or heads")
            read(page)
            survive(page)
            complaints = page.said("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
            holds(not complaints, f"no word on the console {complaints}")
            asked = {request["request"]["url"] for request in page.said("Network.requestWillBeSent")}
            holds(asked <= {url}, f"no request to anywhere {asked - {url}}")
            page.process.terminate()
            page.process.wait()


if sys.argv[1] == "--hostile":
    hostile(sys.argv[2])
else:
    main(sys.argv[1])
