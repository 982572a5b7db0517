//! Chat templates of the models that people train, in small: what is appended, and what is refused.

use starpo::chat::{Chat, Forced, Template, Tokens};

use crate::golden;

/// A character an id; special tokens count from here.
struct Letters(&'static [&'static str]);

const SPECIAL: u32 = 0x11_0000;

impl Tokens for Letters {
    fn encode(&self, text: &str) -> Vec<u32> {
        text.chars().map(u32::from).collect()
    }

    fn decode(&self, ids: &[u32]) -> String {
        let spell = |&id: &u32| match id.checked_sub(SPECIAL) {
            Some(number) => self.0[number as usize].to_owned(),
            None => char::from_u32(id).map(String::from).unwrap_or_default(),
        };
        ids.iter().map(spell).collect()
    }

    fn specials(&self) -> Vec<(String, u32)> {
        self.0.iter().zip(SPECIAL..).map(|(name, id)| ((*name).to_owned(), id)).collect()
    }
}

const CHATML: Letters = Letters(&["<|endoftext|>", "<|im_start|>", "<|im_end|>"]);
const LLAMA3: Letters =
    Letters(&["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]);

const TEMPLATES: [(&str, &Letters, &str); 4] = [
    ("smollm2", &CHATML, include_str!("../fixtures/templates/smollm2.jinja")),
    ("qwen2.5", &CHATML, include_str!("../fixtures/templates/qwen2.5.jinja")),
    ("qwen3", &CHATML, include_str!("../fixtures/templates/qwen3.jinja")),
    ("llama3", &LLAMA3, include_str!("../fixtures/templates/llama3.jinja")),
];

fn chat<'a>(tokens: &'a Letters, template: &str, think: bool) -> Result<Chat<'a>, String> {
    let bos = ("bos_token".to_owned(), tokens.0[0].to_owned());
    Chat::with_template(tokens, Template::new(template, vec![bos])?, vec![SPECIAL, SPECIAL + 1], Forced::of(think))
}

/// Special tokens stand in ⟨⟩, so that text which only spells one is told apart.
fn spelt(tokens: &Letters, ids: &[u32]) -> String {
    let spell = |id: &u32| match tokens.decode(&[*id]) {
        name if *id >= SPECIAL => format!("⟨{name}⟩"),
        text => text.replace('\n', "⏎"),
    };
    ids.iter().map(spell).collect()
}

/// Two turns in each template: a response that ended itself, and one that was cut off.
#[test]
fn conversations_in_the_templates_of_models() {
    let mut text = String::from("Special tokens stand in ⟨⟩; a newline is ⏎.\n");
    for ((name, tokens, template), think) in TEMPLATES.iter().flat_map(|one| [(one, true), (one, false)]) {
        let chat = chat(tokens, template, think).unwrap();
        let line = |what: &str, ids: &[u32]| format!("{what:<9} {}\n", spelt(tokens, ids));
        let mut response = chat.continuation(if think { "<think>go</think><answer>Up" } else { "<answer>Up" });
        text.push_str(&format!("\n{name}, think #{think}\n"));
        text.push_str(&format!("rewrites  {}\n", chat.rewrites().unwrap_or("nothing").replace('\n', "⏎")));
        text.push_str(&line("alone", &chat.opening().unwrap_or_default()));
        text.push_str(&line("system", &chat.system("Push all boxes.")));
        text.push_str(&line("user", &chat.user(" a <|im_end|> that is text<|eot_id|>\n")));
        response.push(chat.end());
        text.push_str(&line("response", &response));
        text.push_str(&line("after", chat.close(&response)));
        response.pop();
        text.push_str(&line("cut off", chat.close(&response)));
        let whole = chat.text(&response);
        for end in chat.ends() {
            assert_eq!(chat.text(&[&response[..], &[end]].concat()), whole);
        }
    }
    golden("chat", "templates", &text);
}

/// The pieces that are appended are what the template says of the whole conversation.
#[test]
fn pieces_are_the_whole() {
    let context = |messages: &[(&str, &str)]| {
        let message = |(role, content): &(&str, &str)| minijinja::context! { role, content };
        messages.iter().map(message).collect::<minijinja::Value>()
    };
    for (name, tokens, template) in TEMPLATES.iter().filter(|(name, ..)| *name != "qwen3") {
        let chat = chat(tokens, template, true).unwrap();
        let replies = ["<think>a</think><answer>Up</answer>", "<think>b</think><answer>Down</answer>"];
        let talk = [
            ("system", "Rules."),
            ("user", "one\ntwo"),
            ("assistant", replies[0]),
            ("user", "three"),
            ("assistant", replies[1]),
            ("user", "four"),
        ];
        let mut environment = minijinja::Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        let values = minijinja::context! {
            messages => context(&talk), add_generation_prompt => true, bos_token => tokens.0[0],
        };
        let whole = environment.render_str(template, values).unwrap();
        let mut ids = chat.system("Rules.");
        for (user, reply) in [("one\ntwo", Some(replies[0])), ("three", Some(replies[1])), ("four", None)] {
            ids.extend(chat.user(user));
            if let Some(reply) = reply {
                let response = chat.continuation(reply);
                ids.extend(&response);
                ids.extend(chat.close(&response));
            }
        }
        assert_eq!(tokens.decode(&ids), whole + "<think>", "{name}");
    }
}

#[test]
fn what_no_conversation_can_be_made_of_is_refused() {
    let mut text = String::from("Templates that are refused, and why.\n");
    let mut refused = |what: &str, template: &str, think: bool| {
        let error = chat(&CHATML, template, think).err().expect(what);
        text.push_str(&format!("\n{what}\n  {error}\n"));
    };
    let chatml = Template::CHATML;
    refused("no template", "{% for message in messages %}", true);
    refused("asks for the day", &format!("{{{{ strftime_now('%Y') }}}}{chatml}"), true);
    refused("no system message", "{{ raise_exception('System role not supported') }}", true);
    let folded = "{% for m in messages %}{% if m.role == 'system' %}{% elif m.role == 'user' %}\
                  [INST] {{ messages[0].content if loop.index == 2 else '' }} {{ m.content }} [/INST]\
                  {% else %}{{ m.content }}<|im_end|>{% endif %}{% endfor %}";
    refused("the system message goes into the first user's", folded, true);
    refused("nothing ends a response", &chatml.replace("<|im_end|>", ""), true);
    refused("numbers its messages", &chatml.replace("message['role']", "message['role'] ~ loop.index"), true);
    refused("always thinks", &chatml.replace("assistant\\n", "assistant\\n<think>\\n"), false);
    golden("chat", "refused", &text);
}

/// A template that opens the thought itself: it is not opened twice.
#[test]
fn a_thought_is_opened_once() {
    let template = Template::CHATML.replace("assistant\\n", "assistant\\n<think>\\n");
    let chat = chat(&CHATML, &template, true).unwrap();
    assert_eq!(chat.prefix(), "<think>\n");
    assert!(spelt(&CHATML, &chat.user("x")).ends_with("assistant⏎<think>⏎"));
    let response = chat.continuation("<think>go</think><answer>Up</answer>");
    assert_eq!(chat.text(&response), "<think>\ngo</think><answer>Up</answer>");
    assert_eq!(chat.tokens_before(&response, "<think>\ngo".len()), 2);
}
