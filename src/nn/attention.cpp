#include "nn/attention.h"

#include <atomic>
#include <numeric>
#include <optional>

#include "nn/fused.h"
#include "nn/library_attention.h"
#include "nn/plain.h"

namespace lockstep {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Threads take whole sentences, or single heads where sentences are few, as they become free. Each
// head is an independent computation, so the result does not depend on the thread that takes it.
template <class F>
void for_each_task(const Segments& target, const Segments& source, int64_t heads, const F& f) {
  const int64_t threads = at::get_num_threads(), tasks = target.sentences() * heads;
  const int64_t step = target.sentences() >= 8 * threads ? heads : 1;  // heads share cache lines
  std::atomic<int64_t> next{0};
  at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t worker = begin; worker < end; ++worker) {
      for (int64_t first = next.fetch_add(step); first < tasks; first = next.fetch_add(step)) {
        for (int64_t task = first; task < first + step; ++task) {
          const std::size_t s = static_cast<std::size_t>(task / heads);
          f(AttentionTask{target.offsets[s], target.offsets[s + 1], source.offsets[s],
                          source.offsets[s + 1], task % heads});
        }
      }
    }
  });
}

// Returns the thread's working memory, which is kept from call to call.
float* scratch(int64_t longest_key, int64_t head_width) {
  static thread_local torch::Tensor memory;
  const int64_t floats = kernels().attention_scratch(longest_key, head_width);
  if (!memory.defined() || memory.numel() < floats) memory = torch::empty({floats}, at::kFloat);
  return memory.data_ptr<float>();
}

struct Layout {  // where query, key and value lie in the two tensors, in elements
  int64_t width;
  torch::Tensor query, memory;  // [target tokens, query.size(1)], [source tokens, memory.size(1)]
  int64_t key_offset;           // of the key in a row of memory; the value is `width` further
};

template <class T>
AttentionArgs<T> make_args(const Layout& in, const AttentionOptions& options,
                           const torch::Tensor& log_sum) {
  AttentionArgs<T> args{};
  args.query = detail::pointer<T>(in.query);
  args.key = detail::pointer<T>(in.memory) + in.key_offset;
  args.value = args.key + in.width;
  args.query_stride = in.query.size(1);
  args.key_stride = in.memory.size(1);
  args.heads = options.heads;
  args.head_width = in.width / options.heads;
  args.causal = options.causal;
  args.dropout = detail::dropout_rows(options.dropout, in.query);
  args.log_sum = detail::pointer<float>(log_sum);
  return args;
}

// The arguments of the kernels for GPUs, and the tensors that they point to besides.
template <class T>
struct GpuAttention {
  GpuAttention(const AttentionArgs<T>& attention, const Layout& in, const Segments& target,
               const Segments& source, bool backward)
      : weights(torch::empty({target.tokens(), attention.heads, source.longest},
                             in.query.options().dtype(at::kFloat))),
        d_scores(backward ? torch::empty_like(weights) : torch::Tensor()),
        args{attention,
             {},
             detail::pointer<int32_t>(target.offsets_there),
             detail::pointer<int32_t>(source.offsets_there),
             target.sentences(),
             source.longest,
             detail::pointer<float>(weights),
             detail::pointer<float>(d_scores)} {}

  torch::Tensor weights, d_scores;
  PackedAttentionArgs<T> args;
};

// Returns out [target tokens, width] and log_sum fp32 [target tokens, heads].
std::pair<torch::Tensor, torch::Tensor> attention_forward(const Layout& in, const Segments& target,
                                                          const Segments& source,
                                                          const AttentionOptions& options) {
  RECORD_FUNCTION("lockstep::attention", {});
  torch::Tensor out = torch::empty({target.tokens(), in.width}, in.query.options());
  torch::Tensor log_sum =
      torch::empty({target.tokens(), options.heads}, in.query.options().dtype(at::kFloat));
  detail::with_type(out.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    AttentionArgs<T> args = make_args<T>(in, options, log_sum);
    args.out = detail::pointer<T>(out);
    args.out_stride = in.width;
    if (!out.is_cpu()) {
      const GpuAttention<T> gpu(args, in, target, source, false);
      return detail::on_gpu(out)->typed<T>().attention(gpu.args, target.tokens() * options.heads);
    }
    const auto kernel = kernels().typed<T>().attention;
    for_each_task(target, source, options.heads, [&](const AttentionTask& task) {
      kernel(args, task, scratch(source.longest, args.head_width));
    });
  });
  return {out, log_sum};
}

struct BackwardInput {
  Layout in;
  Layout gradients;  // shapes of `in`; every element is written
  torch::Tensor log_sum, d_out;
};

void attention_backward(const BackwardInput& b, const Segments& target, const Segments& source,
                        const AttentionOptions& options) {
  RECORD_FUNCTION("lockstep::attention_backward", {});
  detail::with_type(b.d_out.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const AttentionArgs<T> args = make_args<T>(b.in, options, b.log_sum);
    AttentionBackwardArgs<T> out{};
    out.d_out = detail::pointer<T>(b.d_out);
    out.d_out_stride = b.in.width;
    out.d_query = detail::pointer<T>(b.gradients.query);
    out.d_key = detail::pointer<T>(b.gradients.memory) + b.gradients.key_offset;
    out.d_value = out.d_key + b.in.width;
    out.d_query_stride = b.gradients.query.size(1);
    out.d_key_stride = b.gradients.memory.size(1);
    if (!b.d_out.is_cpu()) {
      GpuAttention<T> gpu(args, b.in, target, source, true);
      gpu.args.gradients = out;
      const detail::OnGpu device(b.d_out);
      device->typed<T>().attention_backward_queries(gpu.args, target.tokens() * options.heads);
      device->typed<T>().attention_backward_keys(gpu.args, source.tokens() * options.heads);
      return;
    }
    const auto kernel = kernels().typed<T>().attention_backward;
    for_each_task(target, source, options.heads, [&](const AttentionTask& task) {
      kernel(args, out, task, scratch(source.longest, args.head_width));
    });
  });
}

// These keep segments and options for autograd between forward and backward pass.
void save_offsets(AutogradContext* ctx, const char* name, const Segments& segments) {
  ctx->saved_data[name] = torch::tensor(segments.offsets, torch::kInt32);
  if (segments.offsets_there.defined()) {
    ctx->saved_data[name + std::string(" there")] = segments.offsets_there;
  }
}
Segments saved_offsets(AutogradContext* ctx, const char* name) {
  const torch::Tensor offsets = ctx->saved_data[name].toTensor();
  Segments segments;
  const auto there = ctx->saved_data.find(name + std::string(" there"));
  if (there != ctx->saved_data.end()) segments.offsets_there = there->second.toTensor();
  const int32_t* first = offsets.const_data_ptr<int32_t>();
  segments.offsets.assign(first, first + offsets.numel());
  for (std::size_t s = 1; s < segments.offsets.size(); ++s) {
    segments.longest =
        std::max<int64_t>(segments.longest, segments.offsets[s] - segments.offsets[s - 1]);
  }
  return segments;
}
void save_options(AutogradContext* ctx, const AttentionOptions& options) {
  ctx->saved_data["heads"] = options.heads;
  ctx->saved_data["causal"] = options.causal;
  detail::save_dropout(ctx, options.dropout);
}
AttentionOptions saved_options(AutogradContext* ctx) {
  return {ctx->saved_data["heads"].toInt(), ctx->saved_data["causal"].toBool(),
          detail::saved_dropout(ctx)};
}

struct FusedSelfAttention : Function<FusedSelfAttention> {
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& input,
                               const Segments& segments, const AttentionOptions& options) {
    const torch::Tensor qkv = input.contiguous();
    const int64_t width = qkv.size(1) / 3;
    auto [out, log_sum] = attention_forward({width, qkv, qkv, width}, segments, segments, options);
    ctx->save_for_backward({qkv, log_sum});
    save_offsets(ctx, "target", segments);
    save_options(ctx, options);
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const Segments segments = saved_offsets(ctx, "target");
    const torch::Tensor& qkv = saved[0];
    const int64_t width = qkv.size(1) / 3;
    torch::Tensor d_qkv = torch::empty_like(qkv);
    attention_backward(
        {{width, qkv, qkv, width}, {width, d_qkv, d_qkv, width}, saved[1], grads[0].contiguous()},
        segments, segments, saved_options(ctx));
    return {d_qkv, {}, {}};
  }
};

struct FusedCrossAttention : Function<FusedCrossAttention> {
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& query_input,
                               const torch::Tensor& memory_input, const Segments& target,
                               const Segments& source, const AttentionOptions& options) {
    const torch::Tensor query = query_input.contiguous(), memory = memory_input.contiguous();
    auto [out, log_sum] =
        attention_forward({query.size(1), query, memory, 0}, target, source, options);
    ctx->save_for_backward({query, memory, log_sum});
    save_offsets(ctx, "target", target);
    save_offsets(ctx, "source", source);
    save_options(ctx, options);
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const Segments target = saved_offsets(ctx, "target"), source = saved_offsets(ctx, "source");
    const torch::Tensor &query = saved[0], &memory = saved[1];
    torch::Tensor d_query = torch::empty_like(query), d_memory = torch::empty_like(memory);
    attention_backward({{query.size(1), query, memory, 0},
                        {query.size(1), d_query, d_memory, 0},
                        saved[2],
                        grads[0].contiguous()},
                       target, source, saved_options(ctx));
    return {d_query, d_memory, {}, {}, {}};
  }
};

// Returns segments of one token per sentence.
Segments single_tokens(int64_t sentences, torch::Device device) {
  Segments out;
  if (!device.is_cpu()) {
    out.offsets_there =
        torch::arange(sentences + 1, torch::TensorOptions().dtype(torch::kInt32).device(device));
  }
  out.offsets.resize(static_cast<std::size_t>(sentences) + 1);
  std::iota(out.offsets.begin(), out.offsets.end(), 0);
  out.longest = 1;
  return out;
}

struct FusedFirstTokenAttention : Function<FusedFirstTokenAttention> {
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& input,
                               const Segments& segments, const AttentionOptions& options) {
    const torch::Tensor qkv = input.contiguous();
    const int64_t width = qkv.size(1) / 3;
    const torch::Tensor rows = first_rows(segments, qkv.device());
    const torch::Tensor query = qkv.narrow(1, 0, width).index_select(0, rows);
    auto [out, log_sum] =
        attention_forward({width, query, qkv, width},
                          single_tokens(segments.sentences(), qkv.device()), segments, options);
    ctx->save_for_backward({qkv, query, rows, log_sum});
    save_offsets(ctx, "source", segments);
    save_options(ctx, options);
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const torch::Tensor &qkv = saved[0], &query = saved[1];
    const Segments source = saved_offsets(ctx, "source");
    const int64_t width = query.size(1);
    torch::Tensor d_qkv = torch::empty_like(qkv), d_query = torch::empty_like(query);
    attention_backward({{width, query, qkv, width},
                        {width, d_query, d_qkv, width},
                        saved[3],
                        grads[0].contiguous()},
                       single_tokens(source.sentences(), qkv.device()), source, saved_options(ctx));
    d_qkv.narrow(1, 0, width).zero_().index_copy_(0, saved[2], d_query);
    return {d_qkv, {}, {}};
  }
};

void check_heads(int64_t width, int64_t heads) {
  TORCH_CHECK(heads >= 1 && width % heads == 0, "width ", width, " in ", heads, " heads");
}

}  // namespace

torch::Tensor self_attention(const torch::Tensor& qkv, const Segments& segments,
                             const AttentionOptions& options, const Numerics& numerics) {
  TORCH_CHECK(qkv.dim() == 2 && qkv.size(1) % 3 == 0 && qkv.size(0) == segments.tokens(), "qkv ",
              qkv.sizes(), " for ", segments.tokens(), " tokens");
  check_heads(qkv.size(1) / 3, options.heads);
  const bool librarys =
      detail::takes_librarys(numerics, qkv.narrow(1, 0, qkv.size(1) / 3), options);
  if (!librarys && detail::runs_fused(numerics, FusedOperation::kAttention, qkv)) {
    return FusedSelfAttention::apply(qkv, segments, options);
  }
  const std::vector<torch::Tensor> parts = detail::parts_of(qkv, 3);
  const detail::AttentionInput in{parts[0], parts[1], parts[2], segments, segments};
  return librarys ? detail::librarys_attention(in, options) : detail::plain_attention(in, options);
}

torch::Tensor first_token_attention(const torch::Tensor& qkv, const Segments& segments,
                                    const AttentionOptions& options, const Numerics& numerics) {
  TORCH_CHECK(
      qkv.dim() == 2 && qkv.size(1) % 3 == 0 && qkv.size(0) == segments.tokens() && !options.causal,
      "qkv ", qkv.sizes(), " for ", segments.tokens(), " tokens; causal makes no sense");
  const int64_t width = qkv.size(1) / 3;
  check_heads(width, options.heads);
  if (detail::runs_fused(numerics, FusedOperation::kAttention, qkv)) {
    return FusedFirstTokenAttention::apply(qkv, segments, options);
  }
  const torch::Tensor query =
      qkv.narrow(1, 0, width).index_select(0, first_rows(segments, qkv.device()));
  const std::vector<int32_t> ones(static_cast<std::size_t>(segments.sentences()), 1);
  const Segments target = make_segments(ones, qkv.device());
  return detail::plain_attention(
      {query, qkv.narrow(1, width, width), qkv.narrow(1, 2 * width, width), target, segments},
      options);
}

torch::Tensor cross_attention(const torch::Tensor& query, const torch::Tensor& memory,
                              const Segments& target, const Segments& source,
                              const AttentionOptions& options, const Numerics& numerics) {
  TORCH_CHECK(target.sentences() == source.sentences() && !options.causal, "attention between ",
              target.sentences(), " and ", source.sentences(),
              " sentences; causal is for self-attention only");
  TORCH_CHECK(query.size(0) == target.tokens() && memory.size(0) == source.tokens() &&
                  memory.size(1) == 2 * query.size(1) &&
                  memory.scalar_type() == query.scalar_type(),
              "query ", query.sizes(), " and memory ", memory.sizes(), " do not match");
  check_heads(query.size(1), options.heads);
  const bool librarys = detail::takes_librarys(numerics, query, options);
  if (!librarys && detail::runs_fused(numerics, FusedOperation::kAttention, query)) {
    return FusedCrossAttention::apply(query, memory, target, source, options);
  }
  const std::vector<torch::Tensor> parts = detail::parts_of(memory, 2);
  const detail::AttentionInput in{query, parts[0], parts[1], target, source};
  return librarys ? detail::librarys_attention(in, options) : detail::plain_attention(in, options);
}

}  // namespace lockstep
