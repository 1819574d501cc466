//! A conversation: each line of standard input is said to a model, which answers by its own chat template.
//!
//!     cargo run --release --example chat MODEL
use fovea::{GenerateOptions, Limits, Message, Model};
use std::error::Error;
use std::io::{self, BufRead, Write};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: chat MODEL")?;
    let model = Model::open(path)?;
    let mut session = model.session(&Limits::default())?;
    let options = GenerateOptions { max_new: 256, ..GenerateOptions::default() };
    let mut messages = Vec::new();
    for line in io::stdin().lock().lines() {
        messages.push(Message::user(line?));
        let mut answer = String::new();
        session.chat(&messages, &options, None, |text| {
            answer.push_str(text);
            print!("{text}");
            io::stdout().flush().is_ok()
        })?;
        println!();
        messages.push(Message::assistant(answer));
    }
    Ok(())
}
