// The verbs of the command line, one file each. Every function adds its verb with its options and help; what the verb
// does runs once the whole command line is read. A verb fails by throwing Refusal (or std::exception, exit status 1).
#pragma once
#include <CLI/CLI.hpp>

namespace fovea {

void add_run(CLI::App& app);
void add_convert(CLI::App& app);
void add_inspect(CLI::App& app);
void add_plan(CLI::App& app);
void add_logits(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_bench(CLI::App& app);
void add_certify(CLI::App& app);
void add_eval(CLI::App& app);
void add_embed(CLI::App& app);
void add_attend(CLI::App& app);
void add_encode(CLI::App& app);

}  // namespace fovea
