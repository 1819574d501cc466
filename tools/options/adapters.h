// Adapters that a verb's --lora names: opened, planned for, and put to use.
#pragma once
#include <string>
#include <vector>

#include "fovea/plan.h"
#include "host/model/adapters.h"
#include "host/model/opened.h"
#include "tools/options/options.h"

namespace fovea {

/// --lora FILE[:SCALE], maybe several.
void add_loras(CLI::App& verb, std::vector<ScaledPath>& loras);

/// Refuses --session beside them: what a session's file has was computed with some, and it does not know which.
void check_sessions(const std::string& session, const std::vector<ScaledPath>& loras);

/// Files that `fovea convert ADAPTER --base MODEL` made. They must outlive what uses them.
class Adapters {
public:
    /// Opens each. Throws host::Error for a file that is no adapter.
    explicit Adapters(const std::vector<ScaledPath>& loras, const OpenOptions& options = {});
    Adapters(const Adapters&) = delete;  // list() points to the files
    Adapters& operator=(const Adapters&) = delete;

    /// What a session that is to use them must be planned for.
    void plan(Limits& limits) const { serve::plan_adapters(list_, limits); }
    /// Throws host::Error where one is another model's.
    void use(Session& session) const;
    [[nodiscard]] const std::vector<serve::NamedAdapter>& list() const { return list_; }

private:
    std::vector<host::Opened> files_;
    std::vector<serve::NamedAdapter> list_;
};

}  // namespace fovea
