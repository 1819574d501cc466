#include "host/model/sparse_vectors.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace fovea {

std::vector<TokenWeight> sparse_vector(const host::Opened& opened, std::span<const Token> ids,
                                       std::span<const float> rows) {
    const std::size_t width = rows.size() / std::max<std::size_t>(ids.size(), 1);
    std::vector<TokenWeight> vector;
    if (width == 1) {
        std::map<Token, float> largest;
        for (std::size_t i = 0; i < ids.size(); ++i)
            if (rows[i] > 0 && !opened.tokenizer.is_special(ids[i]))
                largest[ids[i]] = std::max(largest[ids[i]], rows[i]);
        for (const auto& [id, weight] : largest) vector.push_back({id, weight});
        return vector;
    }
    std::vector<float> largest(width);
    for (std::size_t begin = 0; begin < rows.size(); begin += width)
        for (std::size_t id = 0; id < width; ++id) largest[id] = std::max(largest[id], rows[begin + id]);
    const bool twice = find_info(opened.model, "scores") == "log1p twice";
    for (std::size_t id = 0; id < width; ++id) {
        const float once = std::log1p(largest[id]);
        if (once > 0) vector.push_back({static_cast<Token>(id), twice ? std::log1p(once) : once});
    }
    return vector;
}

}  // namespace fovea
