// replay TARGET PATH...: runs a target once for every file named, or found in a folder named.
#include <iterator>
#include <vector>

#include "tests/fuzz/fuzz.h"

std::map<std::string, fovea::fuzz::Target*>& fovea::fuzz::targets() {
    static std::map<std::string, Target*> all;
    return all;
}

int main(int argc, char** argv) {
    namespace fs = std::filesystem;
    const auto target = fovea::fuzz::targets().find(argc > 1 ? argv[1] : "");
    if (target == fovea::fuzz::targets().end()) {
        std::fprintf(stderr, "expected the name of one of %zu targets, got %s\n", fovea::fuzz::targets().size(),
                     argc > 1 ? argv[1] : "none");
        return 2;
    }
    std::size_t n = 0;
    const auto replay = [&](const fs::path& path) {
        std::ifstream file(path, std::ios::binary);
        const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        (void)target->second(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
        ++n;
    };
    for (int i = 2; i < argc; ++i) {
        if (fs::is_directory(argv[i])) {
            for (const auto& entry : fs::recursive_directory_iterator(argv[i]))
                if (entry.is_regular_file()) replay(entry.path());
        } else {
            replay(argv[i]);
        }
    }
    std::printf("%zu inputs\n", n);
    return n ? 0 : 1;
}
