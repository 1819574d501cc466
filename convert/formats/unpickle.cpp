#include "convert/formats/unpickle.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "host/base/error.h"

namespace fovea {
namespace {

/// A value of the stack machine. Containers name their items by number, so nothing is copied or nested.
enum class PickleKind { mark, none, boolean, number, text, tuple, list, dict, name, storage, tensor };

struct Value {
    PickleKind kind = PickleKind::none;
    std::int64_t number = 0;
    std::string text;                  // of a text; of a name, "module.name"
    std::vector<std::uint32_t> items;  // of a tuple, list or tensor's arguments; a dict's keys and values in turn
};

constexpr const char* kKinds[] = {"a mark", "None",         "a boolean", "a number",  "a text",  "a tuple",
                                  "a list", "a dictionary", "a name",    "a storage", "a tensor"};
constexpr std::size_t kMostText = 256;  // bytes: instructions of few bytes may name a text again and again
constexpr int kMostDepth = 8;           // of dictionaries within dictionaries
constexpr std::string_view kOrdered = "collections.OrderedDict";
/// Functions that make a tensor, the first three arguments of which are its storage, offset and shape, and the fourth its strides.
constexpr std::string_view kRebuilds[] = {"torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor"};
/// Functions whose first argument is a tensor already.
constexpr std::string_view kWraps[] = {"torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_storage_type(std::string_view name) {
    return name.starts_with("torch.") && name.ends_with("Storage") && name.find('.', 6) == name.npos;
}

/// The bytes of a pickle, one after the other.
class PickleBytes {
public:
    PickleBytes(std::span<const std::byte> code, const std::string& file) : code_(code), file_(file) {}

    [[noreturn]] void refuse(const std::string& wanted, const std::string& had) const {
        throw host::Error(file_ + ": expected " + wanted + ", got " + had + " at byte " + std::to_string(at_) +
                          " of its pickle");
    }

    const char* take(std::uint64_t n) {
        if (n > code_.size() - at_) refuse("a pickle with an end", "one that is cut off");
        const char* bytes = reinterpret_cast<const char*>(code_.data()) + at_;
        at_ += static_cast<std::size_t>(n);
        return bytes;
    }
    void step_back() { --at_; }
    [[nodiscard]] std::size_t at() const { return at_; }
    template<class T>
    T number() {
        T x;
        std::memcpy(&x, take(sizeof x), sizeof x);
        return x;
    }
    /// A text behind its length in bytes, which is a Size.
    template<class Size>
    std::string text() {
        const auto n = number<Size>();
        const char* bytes = take(n);
        if (n > kMostText)
            refuse("texts of at most " + std::to_string(kMostText) + " bytes", "one of " + std::to_string(n));
        return {bytes, static_cast<std::size_t>(n)};
    }
    std::string line() {
        std::string text;
        for (char c; (c = *take(1)) != '\n';) {
            if (text.size() == kMostText)
                refuse("lines of at most " + std::to_string(kMostText) + " bytes", "a longer one");
            text += c;
        }
        return text;
    }

    /// A number behind its length in bytes: little-endian, two's complement.
    std::int64_t long_number() {
        const std::uint32_t n_bytes = number<std::uint8_t>();
        if (n_bytes > 8) refuse("numbers of 64 bits", "one of " + std::to_string(n_bytes) + " bytes");
        const char* bytes = take(n_bytes);
        std::uint64_t x = n_bytes && (bytes[n_bytes - 1] & 0x80) ? ~std::uint64_t{0} : 0;
        for (std::uint32_t i = n_bytes; i > 0; --i) x = x << 8 | static_cast<std::uint8_t>(bytes[i - 1]);
        return static_cast<std::int64_t>(x);
    }

private:
    const std::span<const std::byte> code_;
    const std::string& file_;
    std::size_t at_ = 0;
};

/// What the value is that a pickle ends with.
class PickleResult {
public:
    PickleResult(const std::vector<Value>& values, const PickleBytes& bytes) : values_(values), bytes_(bytes) {}

    Pickled read(std::uint32_t index) {
        const Value& result = value(index);
        Pickled pickled;
        pickled.n_bytes = bytes_.at();
        pickled.is_list = result.kind == PickleKind::list;
        if (pickled.is_list)
            for (const std::uint32_t item : result.items) pickled.texts.push_back(text_of(value(item)));
        else if (result.kind == PickleKind::dict)
            add_all(result, "", kMostDepth, pickled);
        else
            bytes_.refuse("a dictionary of tensors", kKinds[static_cast<int>(result.kind)]);
        return pickled;
    }

private:
    [[nodiscard]] const Value& value(std::uint32_t index) const { return values_[index]; }

    std::vector<std::uint64_t> sizes(const Value& tuple, const std::string& what) const {
        std::vector<std::uint64_t> result;
        if (tuple.kind != PickleKind::tuple || tuple.items.size() > 8)
            bytes_.refuse(what + " of at most 8 numbers", "another value");
        for (const std::uint32_t item : tuple.items) {
            if (value(item).kind != PickleKind::number || value(item).number < 0)
                bytes_.refuse(what + " of whole numbers", "another");
            result.push_back(static_cast<std::uint64_t>(value(item).number));
        }
        return result;
    }

    [[nodiscard]] const std::string& text_of(const Value& text) const {
        if (text.kind != PickleKind::text) bytes_.refuse("a text", kKinds[static_cast<int>(text.kind)]);
        return text.text;
    }

    /// What a dictionary has, and those in it, each once: one in two places would be read as often as there are ways to it.
    void add_all(const Value& dict, const std::string& prefix, int depth, Pickled& pickled) {
        for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
            const Value &key = value(dict.items[i]), &made = value(dict.items[i + 1]);
            if (key.kind != PickleKind::text)
                bytes_.refuse("a text as a tensor's name", kKinds[static_cast<int>(key.kind)]);
            const std::string name = prefix + key.text;
            if (made.kind == PickleKind::dict && depth > 1 && walked_.insert(dict.items[i + 1]).second)
                add_all(made, name + ".", depth - 1, pickled);
            else if (made.kind == PickleKind::number || made.kind == PickleKind::boolean)
                pickled.numbers[name] = made.number;
            else
                pickled.tensors.push_back(tensor_of(name, made));
        }
    }

    PickledTensor tensor_of(const std::string& name, const Value& made) const {
        if (made.kind != PickleKind::tensor)
            bytes_.refuse("a tensor named " + name, kKinds[static_cast<int>(made.kind)]);
        const Value &storage = value(made.items[0]), &offset = value(made.items[1]);
        if (storage.kind != PickleKind::storage)
            bytes_.refuse("a storage of tensor " + name, kKinds[static_cast<int>(storage.kind)]);
        if (offset.kind != PickleKind::number || offset.number < 0)
            bytes_.refuse("an offset of tensor " + name + " from 0", "another value");
        PickledTensor tensor;
        tensor.name = name;
        tensor.storage = storage.text;
        tensor.storage_type = value(storage.items[0]).text.substr(6);
        tensor.storage_elements = static_cast<std::uint64_t>(storage.number);
        tensor.offset = static_cast<std::uint64_t>(offset.number);
        tensor.shape = sizes(value(made.items[2]), "a shape of tensor " + name);
        tensor.strides = sizes(value(made.items[3]), "strides of tensor " + name);
        return tensor;
    }

    const std::vector<Value>& values_;
    const PickleBytes& bytes_;
    std::unordered_set<std::uint32_t> walked_;  // dictionaries
};

class Machine {
public:
    Machine(std::span<const std::byte> code, const std::string& file) : bytes_(code, file) {}

    Pickled run() {
        while (step()) {
        }
        return PickleResult(values_, bytes_).read(pop());
    }

private:
    // ---- values ----------------------------------------------------------------------------------------------------

    [[nodiscard]] const Value& value(std::uint32_t index) const { return values_[index]; }
    void push(Value made) {
        stack_.push_back(static_cast<std::uint32_t>(values_.size()));
        values_.push_back(std::move(made));
    }
    void push(PickleKind kind, std::int64_t number = 0, std::string text = {}) {
        push(Value{kind, number, std::move(text), {}});
    }
    std::uint32_t pop() {
        if (stack_.empty()) bytes_.refuse("a value on the stack", "none");
        const std::uint32_t top = stack_.back();
        stack_.pop_back();
        return top;
    }
    std::uint32_t top() {
        const std::uint32_t index = pop();
        stack_.push_back(index);
        return index;
    }
    /// The values pushed since the last mark.
    std::vector<std::uint32_t> pop_to_mark() {
        std::size_t first = stack_.size();
        while (first > 0 && value(stack_[first - 1]).kind != PickleKind::mark) --first;
        if (first == 0) bytes_.refuse("a mark on the stack", "none");
        std::vector<std::uint32_t> items(stack_.begin() + static_cast<std::ptrdiff_t>(first), stack_.end());
        stack_.resize(first - 1);
        return items;
    }
    void push_tuple(std::size_t n) {
        std::vector<std::uint32_t> items(n);
        while (n > 0) items[--n] = pop();
        push(Value{PickleKind::tuple, 0, {}, std::move(items)});
    }
    void remember(std::uint64_t place) { memo_[place] = top(); }
    void recall(std::uint64_t place) {
        const auto found = memo_.find(place);
        if (found == memo_.end()) bytes_.refuse("a value remembered before", "number " + std::to_string(place));
        stack_.push_back(found->second);
    }
    void add_items(PickleKind kind, const std::vector<std::uint32_t>& items) {
        const std::uint32_t to = top();
        if (value(to).kind != kind)
            bytes_.refuse(kKinds[static_cast<int>(kind)], kKinds[static_cast<int>(value(to).kind)]);
        if (kind == PickleKind::dict && items.size() % 2) bytes_.refuse("a value for each key", "a key alone");
        values_[to].items.insert(values_[to].items.end(), items.begin(), items.end());
    }

    // ---- instructions ----------------------------------------------------------------------------------------------

    void push_name(const std::string& module, const std::string& name) {
        const std::string full = module + "." + name;
        if (!is_one_of(kRebuilds, full) && !is_one_of(kWraps, full) && full != kOrdered && !is_storage_type(full))
            bytes_.refuse("only tensors, their storages and OrderedDict", full);
        push(PickleKind::name, 0, full);
    }

    /// Calls one of the few functions there are.
    void reduce() {
        const Value& arguments = value(pop());
        const Value& function = value(pop());
        if (function.kind != PickleKind::name || arguments.kind != PickleKind::tuple)
            bytes_.refuse("a name called with a tuple", kKinds[static_cast<int>(function.kind)]);
        if (function.text == kOrdered && arguments.items.empty()) return push(PickleKind::dict);
        if (is_one_of(kWraps, function.text)) {
            if (arguments.items.empty() || value(arguments.items[0]).kind != PickleKind::tensor)
                bytes_.refuse("a tensor as a parameter", "another value");
            return stack_.push_back(arguments.items[0]);
        }
        if (!is_one_of(kRebuilds, function.text))
            bytes_.refuse("a tensor or an empty OrderedDict made", function.text + " called");
        if (arguments.items.size() < 4 || arguments.items.size() > 7)
            bytes_.refuse("four to seven arguments of a tensor", std::to_string(arguments.items.size()));
        push(Value{PickleKind::tensor, 0, {}, arguments.items});
    }

    /// An object's attributes. Only a dictionary may have some, which nothing here reads.
    void build() {
        const PickleKind state = value(pop()).kind, of = value(top()).kind;
        if (state != PickleKind::dict || of != PickleKind::dict)
            bytes_.refuse("attributes of a dictionary", "those of " + std::string(kKinds[static_cast<int>(of)]));
    }

    /// ("storage", type, key, device, elements) is what torch.save keeps beside the pickle. Older ones have a view behind these.
    void push_storage() {
        const Value& id = value(pop());
        const bool has_none = id.items.size() == 6 && value(id.items[5]).kind == PickleKind::none;
        if (id.kind != PickleKind::tuple || (id.items.size() != 5 && !has_none) ||
            value(id.items[0]).text != "storage" || value(id.items[1]).kind != PickleKind::name ||
            !is_storage_type(value(id.items[1]).text) || value(id.items[2]).kind != PickleKind::text ||
            value(id.items[4]).kind != PickleKind::number || value(id.items[4]).number < 0)
            bytes_.refuse("a storage as what is kept outside the pickle", kKinds[static_cast<int>(id.kind)]);
        push(Value{PickleKind::storage, value(id.items[4]).number, value(id.items[2]).text, {id.items[1]}});
    }

    /// One instruction; false: it was the last.
    bool step() {
        const auto code = static_cast<std::uint8_t>(*bytes_.take(1));
        if (make_value(code) || make_container(code)) return true;
        switch (code) {
            case 0x80: {  // PROTO
                const auto protocol = bytes_.number<std::uint8_t>();
                if (protocol < 2 || protocol > 5) bytes_.refuse("protocol 2 to 5", std::to_string(protocol));
                return true;
            }
            case 0x95: bytes_.take(8); return true;                           // FRAME
            case '.': return false;                                           // STOP
            case 'q': remember(bytes_.number<std::uint8_t>()); return true;   // BINPUT
            case 'r': remember(bytes_.number<std::uint32_t>()); return true;  // LONG_BINPUT
            case 0x94: remember(memo_.size()); return true;                   // MEMOIZE
            case 'h': recall(bytes_.number<std::uint8_t>()); return true;     // BINGET
            case 'j': recall(bytes_.number<std::uint32_t>()); return true;    // LONG_BINGET
            case 'R': reduce(); return true;                                  // REDUCE
            case 'b': build(); return true;                                   // BUILD
            case 'Q': push_storage(); return true;                            // BINPERSID
            default:
                bytes_.step_back();
                bytes_.refuse("instructions that make tensors", "number " + std::to_string(code));
        }
    }

    bool make_value(std::uint8_t code) {
        switch (code) {
            case 'N': push(PickleKind::none); return true;                                    // NONE
            case 0x88: push(PickleKind::boolean, 1); return true;                             // NEWTRUE
            case 0x89: push(PickleKind::boolean, 0); return true;                             // NEWFALSE
            case 'K': push(PickleKind::number, bytes_.number<std::uint8_t>()); return true;   // BININT1
            case 'M': push(PickleKind::number, bytes_.number<std::uint16_t>()); return true;  // BININT2
            case 'J': push(PickleKind::number, bytes_.number<std::int32_t>()); return true;   // BININT
            case 0x8a: push(PickleKind::number, bytes_.long_number()); return true;           // LONG1
            case 'X': push(PickleKind::text, 0, bytes_.text<std::uint32_t>()); return true;   // BINUNICODE
            case 'U':
                push(PickleKind::text, 0, bytes_.text<std::uint8_t>());
                return true;  // SHORT_BINSTRING, of Python 2
            case 0x8c: push(PickleKind::text, 0, bytes_.text<std::uint8_t>()); return true;  // SHORT_BINUNICODE
            case 'c': {                                                                      // GLOBAL
                const std::string module = bytes_.line();
                push_name(module, bytes_.line());
                return true;
            }
            case 0x93: {  // STACK_GLOBAL
                const Value &name = value(pop()), &module = value(pop());
                if (name.kind != PickleKind::text || module.kind != PickleKind::text)
                    bytes_.refuse("a name in two texts", "another value");
                push_name(module.text, name.text);
                return true;
            }
            default: return false;
        }
    }

    bool make_container(std::uint8_t code) {
        switch (code) {
            case '(': push(PickleKind::mark); return true;  // MARK
            case '}': push(PickleKind::dict); return true;  // EMPTY_DICT
            case ']': push(PickleKind::list); return true;  // EMPTY_LIST
            case ')': push_tuple(0); return true;           // EMPTY_TUPLE
            case 0x85: push_tuple(1); return true;          // TUPLE1
            case 0x86: push_tuple(2); return true;          // TUPLE2
            case 0x87: push_tuple(3); return true;          // TUPLE3
            case 't': {                                     // TUPLE
                std::vector<std::uint32_t> items = pop_to_mark();
                push(Value{PickleKind::tuple, 0, {}, std::move(items)});
                return true;
            }
            case 's': {  // SETITEM
                const std::uint32_t item = pop(), key = pop();
                add_items(PickleKind::dict, {key, item});
                return true;
            }
            case 'u': add_items(PickleKind::dict, pop_to_mark()); return true;  // SETITEMS
            case 'a': add_items(PickleKind::list, {pop()}); return true;        // APPEND
            case 'e': add_items(PickleKind::list, pop_to_mark()); return true;  // APPENDS
            default: return false;
        }
    }

    PickleBytes bytes_;
    std::vector<Value> values_;
    std::vector<std::uint32_t> stack_;
    std::unordered_map<std::uint64_t, std::uint32_t> memo_;
};

}  // namespace

Pickled unpickle(std::span<const std::byte> pickle, const std::string& file) { return Machine(pickle, file).run(); }

}  // namespace fovea
