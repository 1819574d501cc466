//! How alike two texts are.
//!
//!     cargo run --release --example embed MODEL TEXT TEXT
use fovea::{Model, TextOptions};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, texts) = match arguments.as_slice() {
        [path, first, second] => (path, [first.as_str(), second.as_str()]),
        _ => return Err("usage: embed MODEL TEXT TEXT".into()),
    };
    let vectors = Model::open(path)?.embed(&texts, &TextOptions::default())?;
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    let (a, b) = (&vectors[0], &vectors[1]);
    println!("{:.4}", product(a, b) / (product(a, a) * product(b, b)).sqrt());
    Ok(())
}
