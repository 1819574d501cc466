// Which adapters a workspace uses: each is held against the model before any is taken.
#include <cmath>
#include <new>

#include "engine/pass/pass.h"
#include "engine/run/session.h"
#include "engine/stream/adapters.h"
#include "fovea/adapter.h"
#include "fovea/checksum.h"

namespace fovea {
namespace {

[[nodiscard]] Status mismatch(const char* what, std::uint64_t wanted, std::uint64_t had) noexcept {
    return {Code::bad_shape, what, wanted, had};
}

[[nodiscard]] Status quantized() noexcept {
    return {Code::unsupported, "quantized adapters: expected f32, f16 or bf16", 0, 0};
}

/// Checks one product: both matrices are of floats, and as wide and high as the model's.
[[nodiscard]] Status check_product(const Matrix& in, const Matrix& out, const Matrix& of_model) noexcept {
    if (!in.offset) return {};
    if (is_quantized(in.type) || is_quantized(out.type)) return quantized();
    if (!of_model.offset) return mismatch("matrix of the model that an adapter is for", 1, 0);
    if (in.n_cols != of_model.n_cols) return mismatch("columns of an adapter's matrix", of_model.n_cols, in.n_cols);
    if (out.n_rows != of_model.n_rows) return mismatch("rows of an adapter's matrix", of_model.n_rows, out.n_rows);
    return {};
}

[[nodiscard]] Status check_layer(const AdapterTensors& a, const Layer& layer) noexcept {
    const struct {
        const Matrix &in, &out, &of_model;
    } products[] = {{a.query_in, a.query_out, layer.self.query}, {a.key_in, a.key_out, layer.self.key},
                    {a.value_in, a.value_out, layer.self.value}, {a.output_in, a.output_out, layer.self.output},
                    {a.up_in, a.up_out, layer.feed_forward.up},  {a.down_in, a.down_out, layer.feed_forward.down}};
    for (const auto& product : products)
        if (Status status = check_product(product.in, product.out, product.of_model); !status.ok()) return status;
    return {};
}

/// Checks latent attention: what a narrower row is made by, and the heads' maps, which have the widths of their blocks.
[[nodiscard]] Status check_latent(const AdapterTensors& a, const Block& its, const LatentTensors& t,
                                  const Block& own) noexcept {
    if (Status status = check_product(a.query_down_in, a.query_down_out, t.query_down); !status.ok()) return status;
    if (!a.latent_query_in.offset) return {};
    for (const Matrix* m : {&a.latent_query_in, &a.latent_query_out, &a.latent_value_in, &a.latent_value_out})
        if (is_quantized(m->type)) return quantized();
    const struct {
        const char* what;
        std::uint32_t own, its;
    } widths[] = {{"heads of an adapter's latent attention", own.attention.n_heads, its.attention.n_heads},
                  {"latent_query_dim of an adapter's", own.latent.query_dim, its.latent.query_dim},
                  {"latent_value_dim of an adapter's", own.latent.value_dim, its.latent.value_dim},
                  {"width of an adapter's latent vector", own.attention.value_head_dim, its.attention.value_head_dim}};
    for (const auto& width : widths)
        if (width.own != width.its) return mismatch(width.what, width.own, width.its);
    return {};
}

/// Calls visit(stack, layer of it, layer of all) for every layer of the workspace's model.
[[nodiscard]] Status for_each_layer(const WorkspaceState& w, auto visit) noexcept {
    std::uint32_t number = 0;
    for (const StackIndex index : {StackIndex::encoder, StackIndex::decoder})
        for (std::uint32_t i = 0; i < stack_of(w.model.config(), index).n_layers; ++i)
            if (Status status = visit(index, i, number++); !status.ok()) return status;
    return {};
}

/// As convert/sources/lora_file.h has it of the model that the adapter was made for.
[[nodiscard]] std::uint32_t vectors_checksum(const Model& model) noexcept {
    std::uint32_t checksum = 0;
    for (const StackIndex index : {StackIndex::encoder, StackIndex::decoder}) {
        const Stack& stack = stack_of(model.config(), index);
        if (!stack.n_layers) continue;
        for_each_tensor(stack, index, [&](const TensorSpec& spec) {
            if (!tells_model(spec)) return;
            const TensorRecord* vector = ModelAccess::find(model, index, spec.layer, spec.role);
            if (!vector) return;
            const auto offset = static_cast<std::size_t>(ModelAccess::offset(model, *vector));
            checksum = crc32c(model.bytes().subspan(offset, std::size_t{spec.n_cols} * 4), checksum);
        });
    }
    return checksum;
}

[[nodiscard]] Status check_adapter(const WorkspaceState& w, const Adapter& adapter) noexcept {
    const std::uint32_t rank = adapter.model ? adapter_rank(*adapter.model) : 0;
    if (!rank) return {Code::bad_argument, "adapter: expected an adapter's file", 1, 0};
    if (!std::isfinite(adapter.scale)) return {Code::bad_argument, "adapter's scale: expected a finite number", 0, 0};
    if (rank > w.limits.max_adapter_rank)
        return {Code::bad_limits, "max_adapter_rank at least", rank, w.limits.max_adapter_rank};
    const Config &own = w.model.config(), &its = adapter.model->config();
    for (const StackIndex index : {StackIndex::encoder, StackIndex::decoder})
        if (const std::uint32_t n = stack_of(own, index).n_layers, had = stack_of(its, index).n_layers; n != had)
            return mismatch("layers of an adapter's stack", n, had);
    const std::uint32_t wanted = own.decoder.n_layers ? its.decoder.adapter_base : its.encoder.adapter_base;
    if (const std::uint32_t base = wanted ? vectors_checksum(w.model) : 0; base != wanted)
        return {Code::checksum_mismatch, "vectors of the model that an adapter is for", wanted, base};
    return for_each_layer(w, [&](StackIndex index, std::uint32_t layer, std::uint32_t number) {
        AdapterTensors tensors;
        tensors.find({*adapter.model, index, layer});
        if (Status status = check_layer(tensors, w.layers()[number]); !status.ok() || !has(Part::latent)) return status;
        return check_latent(tensors, stack_of(its, index).block(layer),
                            n_layers_with<LatentTensors>(own) ? w.latent()[number] : LatentTensors{},
                            stack_of(own, index).block(layer));
    });
}

[[nodiscard]] Status set_all(WorkspaceState& w, std::span<const Adapter> adapters) noexcept {
    if (adapters.size() > w.limits.max_adapters)
        return {Code::bad_limits, "max_adapters at least", adapters.size(), w.limits.max_adapters};
    for (const Adapter& adapter : adapters)
        if (Status status = check_adapter(w, adapter); !status.ok()) return status;
    const std::uint64_t n_layers = n_layers_of(w.model.config());
    for (std::uint32_t i = 0; i < adapters.size(); ++i) {
        const Adapter& adapter = adapters[i];
        new (w.arena + w.map.adapter_uses + i * kAdapterUseBytes)
            AdapterUse{adapter.model->bytes().data(), adapter.scale};
        static_cast<void>(for_each_layer(w, [&](StackIndex index, std::uint32_t layer, std::uint32_t number) {
            find_to(w.adapters() + i * n_layers + number, {*adapter.model, index, layer});
            return Status{};
        }));
    }
    w.n_adapters = static_cast<std::uint32_t>(adapters.size());
    return {};
}

}  // namespace

std::uint32_t adapter_rank(const Model& model) noexcept {
    const std::uint32_t of_encoder = model.config().encoder.adapter_rank;
    return of_encoder > model.config().decoder.adapter_rank ? of_encoder : model.config().decoder.adapter_rank;
}

Status set_adapters(Workspace& workspace, std::span<const Adapter> adapters) noexcept {
    if (!workspace.valid()) return {Code::bad_argument, "workspace: not made", 0, 0};
    if (!has(Part::adapters)) return {Code::unsupported, "adapters: left out of this build", 0, 0};
    return set_all(*WorkspaceAccess::state(workspace), adapters);
}

Status set_adapters(Session& session, std::span<const Adapter> adapters) noexcept {
    if (!session.valid()) return {Code::bad_argument, "session: not made", 0, 0};
    if (session.kv_len()) return {Code::bad_argument, "positions cached before adapters change", 0, session.kv_len()};
    Workspace workspace = session.workspace();
    return set_adapters(workspace, adapters);
}

}  // namespace fovea
