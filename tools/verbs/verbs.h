// The verbs of the command line, one file each, and the one list of them. Every function adds its verb with its options
// and help; what the verb does runs once the whole command line is read. A verb fails by throwing host::Error (or
// std::exception, exit status 1). A new verb is a file in this folder and its name below. docs/fovea.1 describes it, which
// a test checks.
#pragma once
#include "tools/options/command_line.h"

namespace fovea {

AddVerb add_run, add_chat, add_convert, add_inspect, add_plan, add_logits, add_attend, add_encode, add_tokenize,
    add_bench, add_certify, add_eval, add_embed, add_classify, add_transcribe, add_grammar, add_serve;

/// Every verb, in the order that `fovea --help` lists them.
inline constexpr AddVerb* kVerbs[] = {add_run,     add_chat,   add_convert,  add_inspect,    add_plan,     add_logits,
                                      add_attend,  add_encode, add_classify, add_transcribe, add_tokenize, add_bench,
                                      add_certify, add_eval,   add_embed,    add_grammar,    add_serve};

}  // namespace fovea
