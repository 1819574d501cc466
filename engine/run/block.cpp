// One transformer block (Vaswani et al. 2017, section 3; where the norm stands: Xiong et al. 2020):
//
//     pre: x = x + f(norm(x))              post: x = norm(x + f(x))            for each f of
//     W_o · attention, W_o · attention to the memory, and W_down · inner
//                                          inner(y) = act(W_up · y), or act(W_gate · y) · (W_up · y)
#include "attention.h"

namespace fovea {
namespace {

void feed_forward(Pass& pass, const FeedForwardTensors& t, const Block& block) noexcept {
    const NormWeights norm{block.norm, t.norm, t.norm_bias, block.norm_epsilon};
    const bool pre = block.norm_place == NormPlace::pre;
    const std::uint32_t n = pass.seq_len, d_model = pass.stack().d_model;
    const Epilogue epilogue = block.gated ? Epilogue::gate : Epilogue::store;
    const Linear up{t.up, t.up_bias, pass.inner(), block.d_ff, epilogue, block.activation};
    const Linear down{t.down, t.down_bias, pass.hidden(), d_model, Epilogue::add};
    const void* normed = pass.operand(t.up.type, pass.hidden(), n, d_model, pre ? norm : NormWeights{});
    pass.multiply("inner", pass.all(pass.inner(), block.d_ff), {&up, 1}, normed, n);
    pass.add_to_stream("block", down, pass.operand(t.down.type, pass.inner(), n, block.d_ff),
                       pre ? NormWeights{} : norm);
}

}  // namespace

void run_block(Pass& pass, const Layer& layer) noexcept {
    const Block& block = pass.stack().blocks[layer.block];
    if (block.n_heads) attention(pass, layer, block, Reads::self);
    if (block.cross_attention) attention(pass, layer, block, Reads::memory);
    if (block.d_ff)
        feed_forward(pass, layer.feed_forward, block);
    else
        pass.show("block", pass.all(pass.hidden(), pass.stack().d_model));
}

}  // namespace fovea
