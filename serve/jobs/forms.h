// Forms that answers must have, compiled for a model's vocabulary: JSON, schemas, grammars, calls of tools.
#pragma once
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "serve/api/request.h"
#include "serve/jobs/job.h"
#include "serve/jobs/worker.h"

namespace fovea::serve {

struct CompiledForm;

/// Of one model. Used by one thread; what it hands out is used by another.
class Forms {
public:
    explicit Forms(const host::Opened& served) : served_(served) {}

    /// What Job::constrain is to be; empty where any text will do. Throws RequestError. A form that was asked for lately
    /// is not compiled again.
    [[nodiscard]] std::function<std::unique_ptr<Constrained>()> find(const Request& request);

private:
    struct Kept {
        Form form;
        bool compact;
        std::string text;
        std::shared_ptr<const CompiledForm> compiled;
    };
    [[nodiscard]] std::shared_ptr<const CompiledForm> compile(Form form, const std::string& text, bool compact,
                                                              const char* param);

    const host::Opened& served_;
    std::shared_ptr<const std::vector<std::byte>> index_;  // of the vocabulary; made for the first form
    std::list<Kept> kept_;                                 // the last used first
};

/// The schema of a call of one of the tools: an object of a name and arguments. `name` empty: any of them.
[[nodiscard]] Json schema_of_calls(const Json& tools, const std::string& name);

}  // namespace fovea::serve
