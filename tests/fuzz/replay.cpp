// Runs a target once for every file named, or found in a folder named, on the command line.
#include <iterator>
#include <vector>

#include "tests/fuzz/fuzz.h"

int main(int argc, char** argv) {
    namespace fs = std::filesystem;
    std::size_t n = 0;
    const auto replay = [&](const fs::path& path) {
        std::ifstream file(path, std::ios::binary);
        const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        (void)LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
        ++n;
    };
    for (int i = 1; i < argc; ++i) {
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
