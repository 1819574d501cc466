// Calls of tools in every dialect, for data that is not ours (tests/host/chat/bfcl_calls.py).
//
//     fovea_tool_calls < CASES     a line {"tools": [...], "calls": [{"name", "arguments"}...], "fits": whether they keep to the
//                                  tools' schemas}; a line for each template: {"dialect", "calls", "forms", "faults": [...]}
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "tests/support/call_checks.h"

namespace {

using namespace fovea;
using namespace fovea::testing;

constexpr std::size_t kMostFaults = 5;  // that are said of a template

/// A dialect's first template has the words of its forms; others have other words.
bool has_form(const Family& family) {
    const auto same = [&](const Family& one) { return std::string_view(one.dialect) == family.dialect; };
    return &*std::find_if(families().begin(), families().end(), same) == &family;
}

Json check(const Family& family, const std::vector<Json>& cases) {
    CallChecks checks(family);
    std::size_t n_calls = 0, n_forms = 0, n_faults = 0;
    Json faults = Json::array();
    const auto note = [&](const std::string& fault) {
        if (!fault.empty() && ++n_faults <= kMostFaults) faults.push_back(fault);
    };
    for (const Json& one : cases) {
        const Json &tools = one.at("tools"), &calls = one.at("calls");
        n_calls += calls.size();
        note(checks.read_back(tools, calls));
        if (!has_form(family) || one.at("fits") != true) continue;
        for (const Json& call : calls) {
            const std::string name = call.at("name");
            try {
                note(checks.fits_form(tools, call, name, true));
                note(checks.fits_form(tools, call, "", false));
                n_forms += 2;
            } catch (const grammar::GrammarError& error) {
                note(error.what() + (" for " + json_text(tools)));
            }
        }
    }
    return {{"dialect", family.dialect},
            {"calls", n_calls},
            {"forms", n_forms},
            {"n_faults", n_faults},
            {"faults", faults}};
}

}  // namespace

int main() {
    std::vector<Json> cases;
    for (std::string line; std::getline(std::cin, line);) cases.push_back(read_json(line));
    for (const Family& family : families()) std::cout << json_text(check(family, cases), true) << std::endl;
}
