// The block product of quantized panels. It goes by groups of 32 columns, where product.h goes column by column: an
// exact integer sum per row is converted, scaled and added to the float sums.
#pragma once
#include "engine/kernels/simd/matmul.h"
#include "engine/kernels/simd/quants.h"

namespace fovea {
namespace {

/// A byte of a panel of that type.
template<Type kType>
struct Quants {
    std::byte byte;
};

/// A unit of a panel, 64 columns, as it is in the file: see QuantFormat.
template<Type kWeights>
struct QuantUnit {
    static constexpr Type kType = kWeights;
    static constexpr QuantFormat kFormat = format_of(kType);
    static constexpr bool kPairs = false;
    static constexpr std::size_t kPairBytes = kFormat.group_bytes() / 4;  // of eight columns, in all planes
    /// Whether a unit's groups share factors, which become floats once for all of them; a broad group uses its own
    /// once.
    static constexpr bool kShares = kFormat.factors() && !kFormat.broad();
    const std::byte *head, *data;
    F32x16 scale_factor, minimum_factor;

    /// Unit i from one on at which factors start.
    FOVEA_LANES static QuantUnit at(const Quants<kType>* first, std::size_t i) {
        const auto* bytes = reinterpret_cast<const std::byte*>(first);
        const auto* head = reinterpret_cast<const Half*>(bytes + kFormat.head_at(i));
        const F32x16 none{};
        return {reinterpret_cast<const std::byte*>(head), bytes + kFormat.unit_at(i), kShares ? load(head) : none,
                kShares && kFormat.minima ? load(head + kLanes) : none};
    }
    FOVEA_LANES const std::byte* quants(std::size_t group) const {
        return data + kFormat.quants_at() + group * kFormat.group_bytes();
    }
    FOVEA_LANES F32x16 scale(std::size_t i) const {
        if constexpr (kFormat.scale == QuantScale::f16) return load(reinterpret_cast<const Half*>(data) + i * kLanes);
        if constexpr (kFormat.scale == QuantScale::bf16)
            return load(reinterpret_cast<const Bfloat*>(data) + i * kLanes);
        if constexpr (kFormat.scale == QuantScale::alone)
            return kShares ? scale_factor : load(reinterpret_cast<const Half*>(head));
        if constexpr (kFormat.scale == QuantScale::nibble) return scale_factor * load_nibbles<0>(small(i));
        return scale_factor * load(small(i));
    }
    FOVEA_LANES F32x16 minimum(std::size_t i) const {
        if constexpr (kFormat.scale == QuantScale::nibble) return minimum_factor * load_nibbles<4>(small(i));
        if constexpr (!kFormat.factors())
            return load(reinterpret_cast<const Half*>(data + kFormat.minima_at()) + i * kLanes);
        return minimum_factor * load(small(i) + kFormat.minima_at());
    }
    /// The first or second cell of a group's columns 8·pair to 8·pair + 7.
    FOVEA_LANES Bytes cell(std::size_t group, std::size_t pair, std::size_t i) const {
        const std::byte* p = quants(group);
        if constexpr (kFormat.bits == 8) return signed_cell(bytes(p + 128 * pair + 64 * i));
        const int at = static_cast<int>(2 * pair + i);
        if constexpr (kFormat.bits <= 3) {
            const Bytes two = moved_bits(bytes(p + pair / 2 * 64), at % 4 * 2, 0, 3);
            if constexpr (kFormat.minima) return two;
            if constexpr (kFormat.bits == 2) return centred_cell<kFormat.zero>(two);
            return centred_cell<kFormat.zero>(two | moved_bits(bytes(p + 128), at, 2, 4));
        }
        const Bytes both = bytes(p + 64 * pair);
        if constexpr (kFormat.bits == 6)
            return centred_cell<kFormat.zero>(
                join_nibbles(both, i, moved_bits(bytes(p + 256 + pair / 2 * 64), at % 4 * 2, 4, 0x30)));
        if constexpr (kFormat.bits == 5) return join_nibbles(both, i, moved_bits(bytes(p + 256), at, 4, 0x10));
        const Bytes nibbles = i ? high_nibbles(both) : low_nibbles(both);
        if constexpr (kFormat.codebook != nullptr) return codebook_cell(nibbles, kFormat.codebook);
        return nibbles;
    }

private:
    /// The multiples of factors that scale i has.
    FOVEA_LANES const std::int8_t* small(std::size_t i) const {
        return reinterpret_cast<const std::int8_t*>(data) + i * kLanes;
    }
};

/// The type as whose cells those of that type are made ready to multiply: fewer kernels for many rows.
[[nodiscard]] constexpr Type widened_type(Type type) {
    const QuantFormat& format = format_of(type);
    if (format.minima) return format.scale_columns == kGroup ? Type::q5_k : type;
    if (format.codebook) return Type::q8;
    if (kSameProducts && !format.broad()) return sums_own(type) ? Type::q6_k : Type::q8;
    return has_packed_zero(type) && type != Type::q4 ? Type::q8 : type;
}

/// A unit for many rows, of a type that widened_type gives: scales as floats, cells ready to multiply.
template<Type kType>
struct WideQuants {
    static constexpr QuantFormat kFormat = format_of(kType);
    float scales[kFormat.n_groups() * (kFormat.minima ? 2 : 1)][kLanes];  // and minima
    std::byte quants[2][kGroup / 8][2][64];
};
template<Type kWeights>
struct WideUnit {
    static constexpr Type kType = kWeights;
    static constexpr QuantFormat kFormat = format_of(kType);
    static constexpr bool kPairs = QuantTiling::kPairs;
    const WideQuants<kType>* data;

    FOVEA_LANES static WideUnit at(const WideQuants<kType>* first, std::size_t i) { return {first + i}; }
    FOVEA_LANES F32x16 scale(std::size_t i) const { return load(data->scales[i]); }
    FOVEA_LANES F32x16 minimum(std::size_t i) const { return load(data->scales[kFormat.n_groups() + i]); }
    FOVEA_LANES Bytes cell(std::size_t group, std::size_t pair, std::size_t i) const {
        return bytes(data->quants[group][pair][i]);
    }
};

/// Bytes of the starts of a unit's groups for kRows rows, of types with starts of their own: these take longer to make
/// than to load.
template<Type kType, std::uint32_t kRows>
constexpr std::size_t unit_starts() {
    if constexpr (requires { Starts<kType, kRows>::kOfUnit; })
        return Starts<kType, kRows>::kOfUnit * kRows * 4;
    else
        return 0;
}

/// The starts of an operand of kRows rows and n units, once for all panels: [n][groups][kRows] int32, or floats.
template<std::uint32_t kRows, Type kType>
void make_starts(const std::byte* x, std::uint32_t n, std::byte* starts) {
    constexpr std::size_t kColumns = format_of(kType).scale_columns, kOfGroup = kGroup / kColumns;
    for (std::uint32_t group = 0; group < 2 * n; ++group, x += kQuantGroupBytes * kRows)
        for (std::size_t part = 0; part < kOfGroup; ++part, starts += 4 * kRows) {
            const Starts<kType, kRows> own(x + part * kColumns * kRows, kRows, x + kGroup * kRows);
            __builtin_memcpy(starts, own.of(0), 4 * kRows);
        }
}

template<Type kType, std::size_t kBytes>
struct QuantColumnGroup {
    using Shape = QuantTiling;
    // If tiles have many rows, broad groups are multiplied as they are: copying them takes longer than flipping their
    // bits for every tile.
    static auto wide() {
        if constexpr (format_of(kType).broad() && QuantTiling::kRows == kRowBlock)
            return Quants<kType>{};
        else
            return WideQuants<widened_type(kType)>{};
    }
    using Wide = decltype(wide());
    static constexpr bool kMainType = format_of(kType).bits == 8 || kType == Type::q4;
    /// The main types' products of up to twelve rows are one function each; of the others the larger tiles share theirs.
    static constexpr std::uint32_t kLoneRows = smaller(kMainType ? kRowBlock : 6, Shape::kRows);
    /// A tile of two rows would unpack narrow cells too often: of more rows they are unpacked once.
    static constexpr std::uint32_t kGemvRows = kMainType || Shape::kRows > 2 ? kFewRows : Shape::kRows;
    /// After which the next tile goes over the same weights.
    static constexpr std::uint32_t kTileUnits = format_of(kType).broad() ? kBroadGroup / kSuperblock : 1;
    static constexpr std::uint32_t kCols = kSuperblock;
    static constexpr std::size_t kUnitBytes = kBytes, kWords = 2 * kQuantGroupBytes / 4;
};
template<Type kType>
struct ColumnGroup<WideQuants<kType>> : QuantColumnGroup<kType, sizeof(WideQuants<kType>)> {
    using Unit = WideUnit<kType>;
    static constexpr std::size_t weight_at(std::size_t unit) { return unit; }
};
template<Type kType>
struct ColumnGroup<Quants<kType>> : QuantColumnGroup<kType, format_of(kType).unit_bytes()> {
    using Unit = QuantUnit<kType>;
    template<std::uint32_t kRows>
    static constexpr std::size_t kStartBytes = unit_starts<kType, kRows>();
    template<std::uint32_t kRows>
    static void make_starts(const float* x, std::uint32_t n, std::byte* starts) {
        fovea::make_starts<kRows, kType>(reinterpret_cast<const std::byte*>(x), n, starts);
    }
    static constexpr std::uint32_t kSecondLevelRows = format_of(kType).bits == 8 ? 4 : 2;  // the others take longer
    /// Blocks of columns start with the factors over them.
    static constexpr std::size_t weight_at(std::size_t unit) {
        return static_cast<std::size_t>(Unit::kFormat.head_at(unit));
    }
    static void widen(const Quants<kType>* from, std::uint32_t n_units, WideQuants<widened_type(kType)>* to) {
        constexpr Type kTo = widened_type(kType);
        constexpr int kMoved = format_of(kType).zero - format_of(kTo).zero;
        for (std::uint32_t n = 0; n < n_units; ++n) {
            const Unit unit = Unit::at(from, n);
            for (std::size_t i = 0; i < Unit::kFormat.n_groups(); ++i) {
                store(unit.scale(i), to[n].scales[i]);
                if constexpr (Unit::kFormat.minima) store(unit.minimum(i), to[n].scales[Unit::kFormat.n_groups() + i]);
            }
            for (std::size_t group = 0; group < 2; ++group) {
                for (std::size_t pair = 0; pair < kGroup / 8; ++pair) {
                    Bytes cell[2] = {unit.cell(group, pair, 0), unit.cell(group, pair, 1)};
                    for (Bytes& each : cell)
                        if constexpr (kMoved != 0)
                            each = kTo == Type::q8 ? signed_cell(less(each, kMoved)) : less(each, kMoved);
                    make_pairs(cell);
                    for (std::size_t half = 0; half < 2; ++half) store(cell[half], to[n].quants[group][pair][half]);
                }
            }
        }
    }
};
static_assert(kColumnBlock % kFactorColumns == 0);

/// Panels of quants; those whose sums go over several of the operand's groups; and the others.
template<class W>
concept QuantPanels = requires {
    typename ColumnGroup<W>::Unit;
};
template<class W>
concept BroadGroups = QuantPanels<W> && ColumnGroup<W>::Unit::kFormat.broad();
template<class W>
concept QuantGroups = QuantPanels<W> && !BroadGroups<W>;

/// Float sums, [row][panel]. Sums in memory leave the registers to the integer sums: the more of those, the less the adders
/// wait. A float sum is touched once for eight integer products. With few rows it would be waited for; there it stays in
/// a register.
template<std::uint32_t kRows, std::uint32_t kPanels>
struct SumsInMemory {
    float* at;
    FOVEA_LANES F32x16 get(std::uint32_t r, std::uint32_t p) const { return load(at + (r * kPanels + p) * kLanes); }
    FOVEA_LANES void set(std::uint32_t r, std::uint32_t p, F32x16 x) const {
        store(x, at + (r * kPanels + p) * kLanes);
    }
    FOVEA_LANES void touch() { asm volatile("" : "+r"(at) : : "memory"); }  // else they would be kept in registers
};
template<std::uint32_t kRows, std::uint32_t kPanels>
struct SumsInRegisters {
    F32x16 (&at)[kRows][kPanels];
    FOVEA_LANES F32x16 get(std::uint32_t r, std::uint32_t p) const { return at[r][p]; }
    FOVEA_LANES void set(std::uint32_t r, std::uint32_t p, F32x16 x) const { at[r][p] = x; }
    FOVEA_LANES void touch() const {}
};

/// Products of two cells of each panel with kRows rows; after a row's last ones after(r), if they are `last`.
template<std::uint32_t kRows, std::uint32_t kDots, class Q, std::uint32_t kPanels, class After>
FOVEA_LANES void add_cells(Dot (&dot)[kDots][kPanels], const Q (&weight)[kPanels], std::size_t group, std::size_t pair,
                           const std::byte* x, std::size_t n_packed, bool last, After&& after) {
    if constexpr (Q::kPairs) {
        add_pairs<kRows>(dot, weight, group, pair, x, n_packed);
        FOVEA_UNROLL for (std::uint32_t r = 0; last && r < kRows; ++r) {
            FOVEA_UNROLL for (std::uint32_t p = 0; r % 2 == 0 && p < kPanels; ++p) split_rows(dot[r][p], dot[r + 1][p]);
            after(r);
        }
    } else {
        add_columns(dot, weight, group, pair, x, n_packed, last, after);
    }
}

/// The scales of a group's sums, and its minima, if there are any.
template<std::uint32_t kPanels>
struct GroupFactors {
    F32x16 scale[kPanels], minimum[kPanels];
};

/// sum[row][p] = fma(products, w_scale·x_scale, sum[row][p]) of row r, then fma(−Σ·x_scale, minimum, it).
template<Type kType, class Sums, std::uint32_t kPanels>
FOVEA_LANES void finish_row(const Sums& sums, std::uint32_t r, const Dot (&dot)[kPanels],
                            const GroupFactors<kPanels>& factors, const std::byte* start, const std::byte* x_scales) {
    const F32x16 x_scale = splat(number(x_scales + 4 * r));
    F32x16 minus{};
    if constexpr (format_of(kType).minima) minus = splat(number(start));
    FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) {
        F32x16 sum = fma(end_sum<kType>(dot[p], start), factors.scale[p] * x_scale, sums.get(r, p));
        if constexpr (format_of(kType).minima) sum = fma(minus, factors.minimum[p], sum);
        sums.set(r, p, sum);
    }
}

/// sum[row][p] = fma(products of one group, w_scale·x_scale, sum[row][p]), then less its minimum; by halves if scales
/// are. x is the group of n_packed rows from the first of kRows on, see Kernels::pack_q8. each_pair(pair) is called
/// before every eight columns, to fetch the next ones. known: the unit's starts, see make_starts, or null.
template<std::uint32_t kRows, class Sums, class Q, std::uint32_t kPanels, class EachPair>
FOVEA_LANES void add_group(const Sums& sums, const Q (&weight)[kPanels], std::size_t group, const std::byte* x,
                           std::size_t n_packed, EachPair&& each_pair, const std::byte* known = nullptr) {
    constexpr std::size_t kParts = kGroup / smaller(kGroup, Q::kFormat.scale_columns), kPartPairs = kGroup / 8 / kParts;
    const std::byte* const x_scales = x + kGroup * n_packed;
    FOVEA_UNROLL for (std::size_t part = 0; part < kParts; ++part) {
        const std::size_t i = group * kParts + part;
        const Starts<Q::kType, kRows> starts(x, n_packed, x_scales, known ? known + i * kRows * 4 : nullptr);
        Dot dot[Q::kPairs ? (kRows + 1) / 2 * 2 : kRows][kPanels] = {};
        FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
            FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) dot[r][p] = begin_sum<Q::kType>(starts.of(r));
        }
        GroupFactors<kPanels> factors;
        // A row is finished beside the next one's last products: then waiting for its sums costs nothing.
        const auto finish = [&](std::uint32_t r) __attribute__((always_inline)) {
            finish_row<Q::kType>(sums, r, dot[r], factors, starts.of(r), x_scales);
        };
        FOVEA_UNROLL for (std::size_t pair = part * kPartPairs; pair < (part + 1) * kPartPairs;
                          ++pair, x += 8 * n_packed) {
            each_pair(pair);
            const bool last = pair + 1 == (part + 1) * kPartPairs;
            FOVEA_UNROLL for (std::uint32_t p = 0; last && p < kPanels; ++p) {
                factors.scale[p] = weight[p].scale(i);
                if constexpr (Q::kFormat.minima) factors.minimum[p] = weight[p].minimum(i);
            }
            add_cells<kRows>(dot, weight, group, pair, x, n_packed, last, finish);
        }
    }
}

/// Sums in memory, [kRows][kPanels·16], before the first group. A compiler turns a plain loop into a string
/// instruction, which takes half as long as a group's products.
template<std::uint32_t kRows, std::uint32_t kPanels>
FOVEA_LANES void clear(float* sums) {
    FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) {
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) store(splat(0.0f), sums + (r * kPanels + p) * kLanes);
    }
}

/// Where a tile fetches: how far from where the first does, whether every line (if tiles go over the same weights, each fetches
/// every other one), and whether to the second level: a bool, asked at each pair, or what a compiler knows.
template<class Level = bool>
struct TileFetch {
    Level second_level{};
    std::size_t shift = 0;
    bool every_line = true;
};

/// Fetches what a pair of a group's cells will be `ahead` bytes on, and the group's scales with the first: evenly, for
/// of a burst only the first lines get under way. `to` says where to.
template<class Q, std::uint32_t kPanels, class Level>
FOVEA_LANES void fetch_pair(const Q (&weight)[kPanels], std::size_t group, std::size_t pair, std::size_t ahead,
                            TileFetch<Level> to) {
    constexpr std::size_t kLine = 64;
    // Else the compiler would fetch for all pairs before the first, and have the whole loop twice.
    asm volatile("" : "+r"(ahead) : : "memory");
    if constexpr (kFetchesFar && std::is_same_v<Level, bool>) asm volatile("" : "+r"(to.second_level));
    const std::size_t end = (pair + 1) * Q::kPairBytes;
    const auto fetch_lines = [&]<int kLocality>() __attribute__((always_inline)) {
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) {
            const std::byte* quants = weight[p].quants(group) + ahead;
            const auto begin = static_cast<std::size_t>(round_up(pair * Q::kPairBytes, kLine));
            FOVEA_UNROLL for (std::size_t line = begin; line < end; line += kLine) {
                if (line % (2 * kLine) == 0 || to.every_line) __builtin_prefetch(quants + line, 0, kLocality);
            }
            const std::size_t line =
                Q::kFormat.quants_at() > kLine ? group * kLine : 0;  // of the scales, then the minima
            if (pair == 0) __builtin_prefetch(weight[p].data + ahead + line, 0, kLocality);
        }
    };
    // Zen 4, the CPU that fetches into that cache, reads q5_k faster if nothing is fetched for it, as measured.
    constexpr bool kLeftAlone = Q::kType == Type::q5_k;
    if (!kFetchesFar || !to.second_level)
        fetch_lines.template operator()<3>();
    else if constexpr (!kLeftAlone)
        fetch_lines.template operator()<2>();
}

/// Fetches a quarter of the group at x of the rows that come next.
template<std::uint32_t kRows, class W, std::uint32_t kPanels>
FOVEA_LANES void fetch_rows(const std::byte* x, const Block<W, kPanels>& b, std::size_t pair) {
    constexpr std::size_t kQuarter = kQuantGroupBytes / 4;
    const std::byte* next = x + b.next_rows + pair * kQuarter * b.operand_stride;
    asm volatile("" : "+r"(next) : : "memory");  // as above
    for (std::size_t line = 0; line < kQuarter * kRows; line += 64) __builtin_prefetch(next + line, 0, 3);
}

/// How far ahead to fetch in unit i of a block whose streams are all fetched as far.
template<class W, std::uint32_t kPanels>
FOVEA_LANES std::size_t ahead_of(const Block<W, kPanels>& b, std::size_t i) {
    const auto ahead = b.ahead[0] - reinterpret_cast<const std::byte*>(b.weight[0]);
    return static_cast<std::size_t>(ahead) + (i < b.ahead_cols ? 0 : b.ahead_jump);
}

/// Goes on with sums over the units [begin, end) of a block. x is the first of them of n_packed rows, from the first of kRows
/// on.
template<std::uint32_t kRows, Fetch kFetch, class Sums, QuantGroups W, std::uint32_t kPanels, class Level>
FOVEA_LANES void add_units(Sums sums, const Block<W, kPanels>& b, std::size_t begin, std::size_t end,
                           const std::byte* x, std::size_t n_packed, TileFetch<Level> to) {
    using Unit = typename ColumnGroup<W>::Unit;
    for (std::size_t i = begin; i < end; ++i) {
        const std::size_t ahead = kFetch == Fetch::first ? ahead_of(b, i) + to.shift : 0;
        if constexpr (kFetch == Fetch::second) fetch_next<kRows>(b, static_cast<std::uint32_t>(i));
        Unit weight[kPanels];
        FOVEA_UNROLL for (std::uint32_t p = 0; p < kPanels; ++p) weight[p] = Unit::at(b.weight[p], i);
        for (std::size_t group = 0; group < 2; ++group, x += kQuantGroupBytes * n_packed) {
            sums.touch();
            const auto fetch = [&](std::size_t pair) __attribute__((always_inline)) {
                if constexpr (kFetch == Fetch::first) fetch_pair(weight, group, pair, ahead, to);
                if constexpr (kFetch == Fetch::second) fetch_rows<kRows>(x, b, pair);
            };
            const std::byte* known = nullptr;
            if constexpr (kFetch == Fetch::first && kRows <= ColumnGroup<W>::kLoneRows)
                if (b.starts) known = b.starts + i * unit_starts<Unit::kType, kRows>();
            add_group<kRows>(sums, weight, group, x, n_packed, fetch, known);
        }
    }
}

/// add_units of a tile. It is no part of the loop over tiles: of all numbers of rows in one function a compiler keeps too
/// little in registers.
template<std::uint32_t kRows, QuantPanels W, std::uint32_t kPanels>
[[gnu::noinline]] void add_tile(float* sum, const Block<W, kPanels>& b, std::size_t begin, std::size_t end,
                                const std::byte* x, std::size_t n_packed, TileFetch<> to) {
    add_units<kRows, Fetch::first>(SumsInMemory<kRows, kPanels>{sum}, b, begin, end, x, n_packed, to);
}

template<std::uint32_t kRows, Fetch kFetch, QuantPanels W, std::uint32_t kPanels>
void microkernel(const Block<W, kPanels>& b) {
    const auto* x = reinterpret_cast<const std::byte*>(b.operand);
    if constexpr (QuantGroups<W> && kPanels == 1 && kRows <= QuantTiling::kStreamRows) {
        F32x16 sum[kRows][kPanels];
        FOVEA_UNROLL for (std::uint32_t r = 0; r < kRows; ++r) sum[r][0] = splat(0.0f);
        // Such a tile reads all weights: it doesn't ask at each pair.
        const auto add = [&]<class Level>(Level) __attribute__((always_inline)) {
            add_units<kRows, kFetch>(SumsInRegisters<kRows, kPanels>{sum}, b, 0, b.n_cols, x, b.operand_stride,
                                     TileFetch<Level>{});
        };
        const bool second_level = kFetchesFar && b.second_level;
        if (!second_level)
            add(std::false_type{});
        else if constexpr (kFetchesFar)
            add(std::true_type{});
        store_totals(sum, b);
    } else {
        alignas(64) float sums[kRows * kPanels * kLanes];
        clear<kRows, kPanels>(sums);
        const TileFetch<> to{b.second_level};
        if constexpr (kFetch == Fetch::first && kRows > QuantTiling::kStreamRows)
            add_tile<kRows>(sums, b, 0, b.n_cols, x, b.operand_stride, to);
        else
            add_units<kRows, kFetch>(SumsInMemory<kRows, kPanels>{sums}, b, 0, b.n_cols, x, b.operand_stride, to);
        store_totals<kRows>(sums, b);
    }
}

/// As product.h's. A single tile goes over all the block at once.
template<std::uint32_t kLeast, QuantPanels W, std::uint32_t kPanels>
void tiles_product(const Block<W, kPanels>& b, const RowTile* tiles, std::uint32_t n_tiles, std::size_t offset) {
    alignas(64) float sums[kFewRows * kPanels * kLanes];
    for (std::uint32_t i = 0; i < kFewRows * kPanels; ++i) store(splat(0.0f), sums + i * kLanes);
    const std::uint32_t step = n_tiles == 1 ? b.n_cols : ColumnGroup<W>::kTileUnits;
    for (std::uint32_t begin = 0; begin < b.n_cols; begin += step, offset += step * ColumnGroup<W>::kWords) {
        const std::uint32_t end = smaller(b.n_cols, begin + step);
        float* sum = sums;
        for (std::uint32_t t = 0; t < n_tiles; ++t) {
            const RowTile& tile = tiles[t];
            const auto* x = reinterpret_cast<const std::byte*>(tile.operand + offset * tile.packed);
            const auto go_on = [&]<std::uint32_t kRows>() __attribute__((always_inline)) {
                add_tile<kRows>(sum, b, begin, end, x, tile.packed, {b.second_level, t % 2 * 64, n_tiles == 1});
            };
            with_rows<kLeast, QuantTiling::kRows>(tile.n_rows, go_on);
            sum += tile.n_rows * kPanels * kLanes;
        }
    }
    store_totals(sums, tiles, n_tiles, b);
}

}  // namespace
}  // namespace fovea
