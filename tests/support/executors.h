// Every executor of this build, for tests of what runs on several threads.
#pragma once
#include <vector>

#include "fovea/executors.h"

namespace fovea::testing {

struct NamedExecutor {
    const char* name;
    Executor executor;
};

[[nodiscard]] inline std::vector<NamedExecutor> executors() {
    std::vector<NamedExecutor> all{{"own", kOwnThreads}};
    if (openmp_executor().run) all.push_back({"openmp", openmp_executor()});
    return all;
}

}  // namespace fovea::testing
