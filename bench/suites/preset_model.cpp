#include "bench/suites/preset_model.h"

#include <unistd.h>

#include <filesystem>
#include <map>

#include "convert/weights/random_model.h"
#include "convert/writer/writer.h"
#include "host/base/error.h"
#include "host/base/words.h"
#include "tools/options/presets.h"

namespace fovea {

PresetModel::PresetModel(const std::string& preset, Type type) {
    const auto path =
        std::filesystem::temp_directory_path() / ("fovea_bench_" + std::to_string(getpid()) + "_" + type_name(type));
    write_file(random_model(preset_config(preset), 1), path, {.type = type});
    const Status mapped = map_file(path.c_str(), mapping_);
    std::filesystem::remove(path);
    require(mapped, path);
    require(open_model(mapping_.bytes(), model_), path);
}

const Model& PresetModel::of(Type type) {
    static std::map<Type, PresetModel> made;
    if (!made.contains(type)) {
        made.clear();
        made.try_emplace(type, "smollm2-135m", type);
    }
    return made.at(type).model();
}

}  // namespace fovea
