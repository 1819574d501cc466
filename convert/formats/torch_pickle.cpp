#include "convert/formats/torch_pickle.h"

#include <limits>
#include <string>

#include "convert/formats/unpickle.h"
#include "convert/formats/zip_entries.h"
#include "host/base/error.h"
#include "host/base/source_file.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::byte>;

struct StorageType {
    const char* name;
    const char* dtype;  // as safetensors spell it
    std::uint64_t bytes;
};
constexpr StorageType kStorageTypes[] = {
    {"FloatStorage", "F32", 4}, {"HalfStorage", "F16", 2}, {"BFloat16Storage", "BF16", 2}, {"DoubleStorage", "F64", 8},
    {"LongStorage", "I64", 8},  {"IntStorage", "I32", 4},  {"ShortStorage", "I16", 2},     {"CharStorage", "I8", 1},
    {"ByteStorage", "U8", 1},   {"BoolStorage", "BOOL", 1}};

constexpr std::size_t kMostPickleBytes = 8u << 20;  // a value takes a hundred bytes of memory

/// The folder of the name that ends in `last`: entries lie in a folder whose name the writer chose.
std::string folder_of(const std::map<std::string, Bytes>& entries, const std::string& last, const std::string& file) {
    for (const auto& [name, bytes] : entries)
        if (name == last || name.ends_with("/" + last)) return name.substr(0, name.size() - last.size());
    throw host::Error(file + ": expected an entry " + last + " as torch.save writes it, got none");
}

/// Elements of a tensor whose rows follow one another without gaps; refuses others, and sizes beyond 2^64.
std::uint64_t count_elements(const PickledTensor& tensor, const std::string& place) {
    std::uint64_t n = 1;
    if (tensor.shape.size() != tensor.strides.size())
        throw host::Error(place + "expected a stride for each dimension, got " + std::to_string(tensor.strides.size()));
    for (std::size_t i = tensor.shape.size(); i > 0; --i) {
        const std::uint64_t size = tensor.shape[i - 1];
        if (size > 1 && tensor.strides[i - 1] != n)
            throw host::Error(place + "expected rows that follow one another, got a stride of " +
                              std::to_string(tensor.strides[i - 1]) + " for " + std::to_string(n));
        if (size != 0 && n > std::numeric_limits<std::uint64_t>::max() / 8 / size)
            throw host::Error(place + "expected a size below 2^61 elements");
        n *= size;
    }
    return n;
}

void add_tensor(const PickledTensor& tensor, const std::map<std::string, Bytes>& entries, const std::string& folder,
                const std::string& file, std::size_t number, Safetensors& result) {
    const std::string place = file + ": tensor " + tensor.name + ": ";
    const StorageType* type = nullptr;
    for (const StorageType& known : kStorageTypes)
        if (tensor.storage_type == known.name) type = &known;
    if (!type) throw host::Error(place + "expected a storage of floats or whole numbers, got " + tensor.storage_type);
    const auto storage = entries.find(folder + "data/" + tensor.storage);
    if (storage == entries.end()) throw host::Error(place + "expected its storage " + tensor.storage + ", got none");
    const std::uint64_t room = storage->second.size() / type->bytes, n = count_elements(tensor, place);
    if (tensor.storage_elements > room)
        throw host::Error(place + "expected a storage of " + std::to_string(tensor.storage_elements) +
                          " elements, got " + std::to_string(room));
    if (tensor.offset > tensor.storage_elements || n > tensor.storage_elements - tensor.offset)
        throw host::Error(place + "expected elements within its storage of " + std::to_string(tensor.storage_elements) +
                          ", got " + std::to_string(n) + " from " + std::to_string(tensor.offset));
    SourceTensor made{type->dtype, tensor.shape, storage->second.data() + tensor.offset * type->bytes, n * type->bytes,
                      number};
    if (!result.tensors.emplace(tensor.name, std::move(made)).second)
        throw host::Error(place + "expected once, got twice");
}

void add_pickle(Safetensors& result, const fs::path& path) {
    result.mappings.push_back(map_source(path));
    result.files.push_back(path);
    const std::string file = path.string();
    const Bytes bytes = result.mappings.back().bytes();
    if (bytes.size() >= 2 && bytes[0] == std::byte{0x80})
        throw host::Error(file +
                          ": expected a ZIP file, which torch.save writes since PyTorch 1.6, got an older checkpoint; "
                          "load and save it with PyTorch");
    const std::map<std::string, Bytes> entries = zip_entries(bytes, file);
    const std::string folder = folder_of(entries, "data.pkl", file);
    if (const auto order = entries.find(folder + "byteorder"); order != entries.end()) {
        const std::string_view word(reinterpret_cast<const char*>(order->second.data()), order->second.size());
        if (word != "little") throw host::Error(file + ": byteorder: expected little, got " + std::string(word));
    }
    const Bytes pickle = entries.at(folder + "data.pkl");
    if (pickle.size() > kMostPickleBytes)
        throw host::Error(file + ": expected a pickle of at most " + std::to_string(kMostPickleBytes) + " bytes, got " +
                          std::to_string(pickle.size()));
    for (const PickledTensor& tensor : unpickle_tensors(pickle, file))
        add_tensor(tensor, entries, folder, file, result.files.size() - 1, result);
}

}  // namespace

Safetensors read_torch_file(const fs::path& path) {
    Safetensors result;
    add_pickle(result, path);
    return result;
}

Safetensors read_weights_folder(const fs::path& folder) {
    const auto is_there = [&](const char* name) {
        std::error_code error;
        return fs::exists(folder / name, error);
    };
    if (is_there("model.safetensors") || is_there("model.safetensors.index.json"))
        return read_safetensors_folder(folder);
    if (is_there("pytorch_model.bin")) return read_torch_file(folder / "pytorch_model.bin");
    if (!is_there("pytorch_model.bin.index.json"))
        throw host::Error(folder.string() +
                          ": expected model.safetensors or pytorch_model.bin, or the index.json of either, "
                          "got none of them");
    Safetensors result;
    for (const std::string& name : shard_names(folder / "pytorch_model.bin.index.json"))
        add_pickle(result, folder / name);
    return result;
}

}  // namespace fovea
