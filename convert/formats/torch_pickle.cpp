#include "convert/formats/torch_pickle.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

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

const StorageType& storage_type(const PickledTensor& tensor, const std::string& file) {
    for (const StorageType& known : kStorageTypes)
        if (tensor.storage_type == known.name) return known;
    throw host::Error(file + ": tensor " + tensor.name + ": expected a storage of floats or whole numbers, got " +
                      tensor.storage_type);
}

/// How many elements a tensor has, how many of its storage it spans, and whether its rows follow one another.
struct Extent {
    std::uint64_t n = 1, span = 0;
    bool in_order = true;
};

/// Refuses sizes beyond 2^61 elements.
Extent extent_of(const PickledTensor& tensor, const std::string& place) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 61;
    Extent extent;
    if (tensor.shape.size() != tensor.strides.size())
        throw host::Error(place + "expected a stride for each dimension, got " + std::to_string(tensor.strides.size()));
    for (std::size_t i = tensor.shape.size(); i > 0; --i) {
        const std::uint64_t size = tensor.shape[i - 1], stride = tensor.strides[i - 1];
        extent.in_order &= size <= 1 || stride == extent.n;
        if (size > 1 && stride > kMost / size)
            throw host::Error(place + "expected strides below 2^61 elements, got " + std::to_string(stride));
        if (size != 0 && extent.n > kMost / size) throw host::Error(place + "expected a size below 2^61 elements");
        if (size > 1) extent.span += (size - 1) * stride;
        extent.n *= size;
    }
    extent.span = extent.n ? extent.span + 1 : 0;
    return extent;
}

/// The elements in the order of their indices.
std::vector<std::byte> in_order(const PickledTensor& tensor, const std::byte* from, std::uint64_t n,
                                std::uint64_t element_bytes) {
    std::vector<std::byte> copy(n * element_bytes);
    std::vector<std::uint64_t> index(tensor.shape.size(), 0);
    for (std::uint64_t i = 0; i < n; ++i) {
        std::uint64_t at = 0;
        for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * tensor.strides[d];
        std::memcpy(copy.data() + i * element_bytes, from + at * element_bytes, element_bytes);
        for (std::size_t d = index.size(); d > 0 && ++index[d - 1] == tensor.shape[d - 1]; --d) index[d - 1] = 0;
    }
    return copy;
}

/// Storages by their names.
using Storages = std::map<std::string, Bytes>;

void add_tensor(const PickledTensor& tensor, const Storages& storages, const std::string& file, std::size_t number,
                Safetensors& result) {
    const std::string place = file + ": tensor " + tensor.name + ": ";
    const StorageType& type = storage_type(tensor, file);
    const auto storage = storages.find(tensor.storage);
    if (storage == storages.end()) throw host::Error(place + "expected its storage " + tensor.storage + ", got none");
    const std::uint64_t room = storage->second.size() / type.bytes;
    const Extent extent = extent_of(tensor, place);
    if (tensor.storage_elements > room)
        throw host::Error(place + "expected a storage of " + std::to_string(tensor.storage_elements) +
                          " elements, got " + std::to_string(room));
    const std::uint64_t needed = std::max(extent.n, extent.span);  // one element for many is no tensor of a model
    if (tensor.offset > tensor.storage_elements || needed > tensor.storage_elements - tensor.offset)
        throw host::Error(place + "expected elements within its storage of " + std::to_string(tensor.storage_elements) +
                          ", got " + std::to_string(needed) + " from " + std::to_string(tensor.offset));
    const std::byte* data = storage->second.data() + tensor.offset * type.bytes;
    if (!extent.in_order && extent.n) {
        result.copies.push_back(in_order(tensor, data, extent.n, type.bytes));
        data = result.copies.back().data();
    }
    SourceTensor made{type.dtype, tensor.shape, data, extent.n * type.bytes, number};
    if (!result.tensors.emplace(tensor.name, std::move(made)).second)
        throw host::Error(place + "expected once, got twice");
}

Pickled unpickle_whole(Bytes pickle, const std::string& file) {
    if (pickle.size() > kMostPickleBytes)
        throw host::Error(file + ": expected a pickle of at most " + std::to_string(kMostPickleBytes) + " bytes, got " +
                          std::to_string(pickle.size()));
    return unpickle(pickle, file);
}

/// A ZIP file has an entry data.pkl, and one for each storage beside it.
Pickled read_zip(Bytes bytes, const std::string& file, Storages& storages) {
    const std::map<std::string, Bytes> entries = zip_entries(bytes, file);
    const std::string folder = folder_of(entries, "data.pkl", file);
    if (const auto order = entries.find(folder + "byteorder"); order != entries.end()) {
        const std::string_view word(reinterpret_cast<const char*>(order->second.data()), order->second.size());
        if (word != "little") throw host::Error(file + ": byteorder: expected little, got " + std::string(word));
    }
    const std::string of_storages = folder + "data/";
    for (const auto& [name, content] : entries)
        if (name.starts_with(of_storages)) storages.emplace(name.substr(of_storages.size()), content);
    return unpickle_whole(entries.at(folder + "data.pkl"), file);
}

/// How a file begins that torch.save wrote before PyTorch 1.6: pickles of a magic number and of a version.
constexpr std::string_view kOldBeginning = "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.";

/// Behind them there are pickles of what the system was, of the tensors and of the names of their storages; then those, each
/// behind its number of elements.
Pickled read_old(Bytes bytes, const std::string& file, Storages& storages) {
    Bytes rest = bytes.subspan(kOldBeginning.size());
    const auto next = [&] {
        Pickled pickled = unpickle(rest.first(std::min(rest.size(), kMostPickleBytes)), file);
        rest = rest.subspan(pickled.n_bytes);
        return pickled;
    };
    if (const Pickled system = next(); system.numbers.count("little_endian") && !system.numbers.at("little_endian"))
        throw host::Error(file + ": little_endian: expected true, got false");
    Pickled pickled = next();
    std::map<std::string, std::uint64_t> element_bytes;
    for (const PickledTensor& tensor : pickled.tensors)
        element_bytes[tensor.storage] = storage_type(tensor, file).bytes;
    const Pickled names = next();
    for (const std::string& name : names.texts) {
        std::uint64_t n = 0;
        if (rest.size() < sizeof n)
            throw host::Error(file + ": expected storage " + name + ", got the end of the file");
        std::memcpy(&n, rest.data(), sizeof n);
        rest = rest.subspan(sizeof n);
        const auto of_each = element_bytes.find(name);
        if (of_each == element_bytes.end())
            throw host::Error(file + ": expected a tensor of storage " + name + ", got none");
        if (n > rest.size() / of_each->second)
            throw host::Error(file + ": expected " + std::to_string(n) + " elements of storage " + name + ", got " +
                              std::to_string(rest.size() / of_each->second));
        const auto n_bytes = static_cast<std::size_t>(n * of_each->second);
        storages.emplace(name, rest.first(n_bytes));
        rest = rest.subspan(n_bytes);
    }
    return pickled;
}

void add_checkpoint(TorchCheckpoint& result, const fs::path& path) {
    Safetensors& tensors = result.tensors;
    tensors.mappings.push_back(map_source(path));
    tensors.files.push_back(path);
    const std::string file = path.string();
    const Bytes bytes = tensors.mappings.back().bytes();
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const bool is_old = text.starts_with(kOldBeginning);
    if (!is_old && text.starts_with('\x80'))
        throw host::Error(file + ": expected a checkpoint as torch.save writes it, got another pickle");
    Storages storages;
    Pickled pickled = is_old ? read_old(bytes, file, storages) : read_zip(bytes, file, storages);
    if (pickled.is_list) throw host::Error(file + ": expected a dictionary of tensors, got a list");
    for (const PickledTensor& tensor : pickled.tensors)
        add_tensor(tensor, storages, file, tensors.files.size() - 1, tensors);
    result.numbers.merge(pickled.numbers);
}

Safetensors tensors_alone(TorchCheckpoint checkpoint) {
    for (const auto& [name, number] : checkpoint.numbers)
        throw host::Error(checkpoint.tensors.files.back().string() + ": expected a tensor named " + name + ", got " +
                          std::to_string(number));
    return std::move(checkpoint.tensors);
}

}  // namespace

TorchCheckpoint read_torch_checkpoint(const fs::path& path) {
    TorchCheckpoint result;
    add_checkpoint(result, path);
    return result;
}

bool looks_like_checkpoint(std::string_view start) {
    return start.starts_with("PK\x03\x04") || (!start.empty() && kOldBeginning.starts_with(start));
}

Safetensors read_torch_file(const fs::path& path) { return tensors_alone(read_torch_checkpoint(path)); }

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
    TorchCheckpoint result;
    for (const std::string& name : shard_names(folder / "pytorch_model.bin.index.json"))
        add_checkpoint(result, folder / name);
    return tensors_alone(std::move(result));
}

}  // namespace fovea
