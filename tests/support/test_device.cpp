#include "support/test_device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Backtrace.h>
#include <sys/mman.h>
#include <torch/library.h>
#include <torch/version.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "dist/collectives/cuda.h"
#include "dist/collectives/gloo_backend.h"
#include "support/host_rows.h"

namespace lockstep {
namespace {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;
constexpr c10::DispatchKey kKey = c10::DispatchKey::PrivateUse1;

// Memory that is mapped twice: at closed addresses, which tensors have, and at open ones a fixed
// distance away, which only copies use. The closed ones have a key of the processor (pkeys(7)),
// which opens them to a thread by an instruction; where there is none, they change their
// protection.
class Arena {
 public:
  Arena() {
    const int file = ::memfd_create("test-device", MFD_CLOEXEC);
    if (file < 0 || ::ftruncate(file, kBytes) != 0) throw std::runtime_error("no memory file");
    closed_ = map(file, PROT_NONE);
    open_ = map(file, PROT_READ | PROT_WRITE);
    ::close(file);
    key_ = ::pkey_alloc(0, PKEY_DISABLE_ACCESS);
    if (key_ >= 0 && ::pkey_mprotect(closed_, kBytes, PROT_READ | PROT_WRITE, key_) != 0) {
      throw std::runtime_error("no key for the memory of the test device");
    }
  }

  // Sizes are powers of two, so that blocks are used again.
  void* take(std::size_t bytes) {
    const std::size_t size = std::bit_ceil(std::max<std::size_t>(bytes, 64));
    std::scoped_lock lock(mutex_);
    std::vector<char*>& free = free_[size];
    if (free.empty()) {
      if (used_ + size > kBytes) throw std::runtime_error("the test device has no memory left");
      free.push_back(closed_ + used_);
      used_ += size;
    }
    char* out = free.back();
    free.pop_back();
    sizes_[out] = size;
    return out;
  }
  void give_back(void* block) {
    std::scoped_lock lock(mutex_);
    const auto at = sizes_.find(static_cast<char*>(block));
    free_[at->second].push_back(at->first);
    sizes_.erase(at);
  }

  // While a kernel of the device runs, the closed addresses are open: to its thread by a key, to
  // the whole process without.
  void begin_kernel() {
    if (key_ >= 0) return set_key(0);
    std::scoped_lock lock(mutex_);
    ++kernels_;
    protect(PROT_READ | PROT_WRITE);
  }
  void end_kernel() {
    if (key_ >= 0) return set_key(PKEY_DISABLE_ACCESS);
    std::scoped_lock lock(mutex_);
    if (--kernels_ == 0) protect(PROT_NONE);
  }

  // The open address of a closed one.
  void* open(const void* closed) const {
    return open_ + (static_cast<const char*>(closed) - closed_);
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{4} << 30;  // of addresses; pages come when used

  static char* map(int file, int protection) {
    void* at = ::mmap(nullptr, kBytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (at == MAP_FAILED) throw std::runtime_error("no addresses for the test device");
    return static_cast<char*>(at);
  }

  void set_key(unsigned rights) {
    if (::pkey_set(key_, rights) != 0) std::abort();
  }
  void protect(int protection) {
    if (::mprotect(closed_, used_pages(), protection) != 0) std::abort();
  }
  // What was taken so far, in whole pages.
  std::size_t used_pages() const { return (used_ + 4095) / 4096 * 4096; }

  char* closed_ = nullptr;
  char* open_ = nullptr;
  int key_ = -1;
  std::mutex mutex_;
  std::size_t used_ = 0;
  int kernels_ = 0;  // that run
  std::map<std::size_t, std::vector<char*>> free_;
  std::map<char*, std::size_t> sizes_;
};

int number_of(const char* variable, int otherwise) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? otherwise : std::atoi(value);
}

// Of a host.
int devices() {
  static const int count = number_of("LOCKSTEP_TEST_DEVICES", 2);
  return count;
}

// Each rank of a host has a device of its own, or a part of one, with its memory in the rank's
// process.
c10::DeviceIndex own_index() {
  static const auto index = static_cast<c10::DeviceIndex>(number_of("LOCAL_RANK", 0) % devices());
  return index;
}
c10::Device own_device() { return {kType, own_index()}; }

Arena& arena() {
  static Arena* const made = new Arena;  // outlives every tensor
  return *made;
}

// What tensors have, as the caching allocator of a GPU counts it, up to LOCKSTEP_TEST_DEVICE_BYTES.
class DeviceAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    {
      std::scoped_lock lock(mutex_);
      const int64_t size = rounded(bytes);
      TORCH_CHECK_WITH(OutOfMemoryError, in_use_ + size <= capacity_,
                       "test device out of memory. Tried to allocate ", size, " bytes; of ",
                       capacity_, " are ", capacity_ - in_use_,
                       " free. Of the allocated memory nothing is known.");
      in_use_ += size;
      peak_ = std::max(peak_, in_use_);
      most_ = std::max(most_, in_use_);
    }
    auto* const block = new Block{arena().take(bytes), bytes};
    return {block->memory, block, &give_back, own_device()};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(arena().open(to), arena().open(from), bytes);
  }

  int64_t most_bytes() {
    std::scoped_lock lock(mutex_);
    return most_;
  }

  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    std::scoped_lock lock(mutex_);
    c10::CachingDeviceAllocator::DeviceStats out;
    auto& tensors =
        out.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
    tensors.current = in_use_;
    tensors.peak = peak_;
    return out;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {
    std::scoped_lock lock(mutex_);
    peak_ = in_use_;
  }
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex) override {
    std::scoped_lock lock(mutex_);
    return {static_cast<std::size_t>(capacity_ - in_use_), static_cast<std::size_t>(capacity_)};
  }

 private:
  struct Block {
    void* memory;
    std::size_t bytes;
  };

  static int64_t rounded(std::size_t bytes) {
    return static_cast<int64_t>((bytes + 511) / 512 * 512);
  }
  static int64_t capacity() {
    const char* const told = std::getenv("LOCKSTEP_TEST_DEVICE_BYTES");
    return told == nullptr ? int64_t{4} << 30 : std::atoll(told);
  }
  static void give_back(void* given);

  std::mutex mutex_;
  const int64_t capacity_ = capacity();
  int64_t in_use_ = 0, peak_ = 0, most_ = 0;
};

DeviceAllocator& device_allocator() {
  static auto* const one = new DeviceAllocator;  // outlives every tensor
  return *one;
}

void DeviceAllocator::give_back(void* given) {
  const std::unique_ptr<Block> block(static_cast<Block*>(given));
  arena().give_back(block->memory);
  DeviceAllocator& own = device_allocator();
  std::scoped_lock lock(own.mutex_);
  own.in_use_ -= rounded(block->bytes);
}

// Host memory that knows to be pinned.
class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    char* block = new char[bytes + 64];
    std::scoped_lock lock(mutex());
    blocks()[block] = bytes + 64;
    return {block, block, &give_back, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
  static bool holds(const void* at) {
    std::scoped_lock lock(mutex());
    auto after = blocks().upper_bound(static_cast<const char*>(at));
    return after != blocks().begin() &&
           static_cast<const char*>(at) < std::prev(after)->first + std::prev(after)->second;
  }

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::map<const char*, std::size_t>& blocks() {
    static auto* const all = new std::map<const char*, std::size_t>;
    return *all;
  }
  static void give_back(void* block) {
    {
      std::scoped_lock lock(mutex());
      blocks().erase(static_cast<char*>(block));
    }
    delete[] static_cast<char*>(block);
  }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return devices(); }
  c10::DeviceIndex getCurrentDevice() const override { return own_index(); }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return own_index(); }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return own_index(); }
  bool isPinnedPtr(const void* data) const override { return PinnedAllocator::holds(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    static PinnedAllocator one;
    return &one;
  }
  c10::Device getDeviceFromPtr(void*) const override { return own_device(); }
};

// One device, whose streams do everything when it is called for.
std::atomic<int64_t> stream_waits;

struct Guard final : c10::impl::NoOpDeviceGuardImpl<kType> {
  c10::Device exchangeDevice(c10::Device) const override { return own_device(); }
  c10::Device getDevice() const override { return own_device(); }
  c10::Stream getStream(c10::Device) const noexcept override { return current(); }
  c10::Stream getNewStream(c10::Device, int) const override {
    return c10::Stream(c10::Stream::UNSAFE, own_device(), 1);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    return std::exchange(current(), stream);
  }
  void block(void*, const c10::Stream&) const override { stream_waits += 1; }

  // An event is the moment at which it was recorded.
  void record(void** event, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) *event = new Moment;
    *static_cast<Moment*>(*event) = std::chrono::steady_clock::now();
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Moment*>(event);
  }
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}
  double elapsedTime(void* first, void* second, c10::DeviceIndex) const override {
    const std::chrono::duration<double, std::milli> between =
        *static_cast<Moment*>(second) - *static_cast<Moment*>(first);
    return between.count();
  }

 private:
  using Moment = std::chrono::steady_clock::time_point;
  static c10::Stream& current() {
    static thread_local c10::Stream one(c10::Stream::DEFAULT, own_device());
    return one;
  }
};

std::atomic<int64_t> copies_in, copies_out, waits, bytes_in, bytes_out, kernels_run, attentions;
thread_local int within_operation = 0;

// With LOCKSTEP_TEST_DEVICE_TRACE set, each wait says where it is.
void count_wait() {
  static const bool traced = std::getenv("LOCKSTEP_TEST_DEVICE_TRACE") != nullptr;
  waits += 1;
  if (traced) std::fprintf(stderr, "wait:\n%s\n", c10::get_backtrace(2, 24, true).c_str());
}

// The tensor itself, where it is on the CPU, or its memory under the open addresses.
at::Tensor open_view(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  void* const data = arena().open(tensor.const_data_ptr());
  return at::from_blob(data, tensor.sizes(), tensor.strides(), tensor.options().device(c10::kCPU));
}

at::Tensor empty(c10::IntArrayRef size, std::optional<c10::ScalarType> type,
                 std::optional<c10::Layout>, std::optional<c10::Device>, std::optional<bool>,
                 std::optional<c10::MemoryFormat> format) {
  return at::detail::empty_generic(size, &device_allocator(), c10::DispatchKeySet(kKey),
                                   c10::dtype_or_default(type), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride,
                         std::optional<c10::ScalarType> type, std::optional<c10::Layout>,
                         std::optional<c10::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &device_allocator(),
                                           c10::DispatchKeySet(kKey), c10::dtype_or_default(type));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  at::NoGradGuard no_grad;
  if (within_operation == 0 && from.is_cpu() != to.is_cpu()) {
    (from.is_cpu() ? copies_in : copies_out) += 1;
    (from.is_cpu() ? bytes_in : bytes_out) += static_cast<int64_t>(to.nbytes());
    const at::Tensor& host = from.is_cpu() ? from : to;
    if (!non_blocking || !PinnedAllocator::holds(host.const_data_ptr())) count_wait();
  }
  open_view(to).copy_(open_view(from));
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  return copy_from(from, to, false);
}

const at::Tensor& resize(const at::Tensor& self, c10::IntArrayRef size,
                         std::optional<c10::MemoryFormat> format) {
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  const std::size_t before = impl->storage().nbytes();
  impl->set_sizes_contiguous(size);
  if (format) impl->empty_tensor_restride(*format);
  const std::size_t bytes =
      static_cast<std::size_t>(impl->storage_offset() + impl->numel()) * self.element_size();
  if (bytes > before) {
    c10::DataPtr larger = device_allocator().allocate(bytes);
    if (before > 0) device_allocator().copy_data(larger.get(), impl->storage().data(), before);
    impl->storage().set_data_ptr_noswap(std::move(larger));
    impl->storage().unsafeGetStorageImpl()->set_nbytes(bytes);
  }
  return self;
}

c10::Scalar local_scalar(const at::Tensor& self) {
  if (within_operation == 0) count_wait();
  return at::native::_local_scalar_dense_cpu(open_view(self));
}

// A copy on the device of what an operation made on the CPU.
at::Tensor on_device(const at::Tensor& made) {
  if (!made.defined()) return made;
  at::Tensor out = at::empty_like(made, made.options().device(own_device()));
  open_view(out).copy_(made);
  return out;
}

// Views share memory, so they are made here and not on copies.
at::Tensor as_strided(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride,
                      std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}
at::Tensor view(const at::Tensor& self, c10::IntArrayRef size) {
  return at::native::view(self, size);
}
at::Tensor reshape_alias(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride) {
  return at::native::_reshape_alias(self, size, stride);
}
at::Tensor unfold(const at::Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return at::native::unfold(self, dimension, size, step);
}

std::optional<at::Tensor> open_view_if_any(const std::optional<at::Tensor>& tensor) {
  return tensor && tensor->defined() ? std::optional(open_view(*tensor)) : std::nullopt;
}

// What a GPU has cuDNN for.
at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias, c10::IntArrayRef stride,
                       c10::IntArrayRef padding, c10::IntArrayRef dilation, bool transposed,
                       c10::IntArrayRef output_padding, int64_t groups) {
  return on_device(at::convolution(open_view(x), open_view(weight), open_view_if_any(bias), stride,
                                   padding, dilation, transposed, output_padding, groups));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& weight,
    c10::IntArrayRef stride, c10::IntArrayRef padding, c10::IntArrayRef dilation, bool transposed,
    c10::IntArrayRef output_padding, int64_t groups, std::array<bool, 3> wanted) {
  const std::vector<int64_t> bias = {transposed ? weight.size(1) * groups : weight.size(0)};
  auto [dx, dw, db] =
      at::convolution_backward(open_view(gradient), open_view(x), open_view(weight),
                               wanted[2] ? at::OptionalIntArrayRef(bias) : std::nullopt, stride,
                               padding, dilation, transposed, output_padding, groups, wanted);
  return {on_device(dx), on_device(dw), on_device(db)};
}

// The kernels that lockstep has for GPUs.
struct DeviceLaunch {
  template <class Row, class Args>
  static void row(const Args& args, int64_t rows) {
    run([&] { HostLaunch::row<Row>(args, rows); });
  }
  template <class Element, class Args>
  static void element(const Args& args, int64_t count) {
    run([&] { HostLaunch::element<Element>(args, count); });
  }

 private:
  template <class Kernel>
  static void run(const Kernel& kernel) {
    static const int breaks = number_of("LOCKSTEP_TEST_DEVICE_BREAKS", 0);
    if (++kernels_run == breaks) {
      throw c10::AcceleratorError({__func__, __FILE__, __LINE__}, 700,
                                  "CUDA error: an illegal memory access was encountered\n"
                                  "For debugging consider passing CUDA_LAUNCH_BLOCKING=1");
    }
    arena().begin_kernel();
    kernel();
    arena().end_kernel();
  }
};

// One sentence's part of a tensor [1, tokens, heads, width], as [heads, tokens, width].
at::Tensor of_sentence(const at::Tensor& x, const at::Tensor& offsets, int64_t sentence) {
  const auto begin = offsets[sentence].item<int64_t>(), end = offsets[sentence + 1].item<int64_t>();
  return x[0].narrow(0, begin, end - begin).transpose(0, 1);
}

// The weights of one sentence, fp32 [heads, queries, keys].
at::Tensor attention_weights(const at::Tensor& q, const at::Tensor& k, bool causal) {
  at::Tensor scores = at::matmul(q.to(at::kFloat), k.to(at::kFloat).transpose(1, 2)) /
                      std::sqrt(static_cast<double>(q.size(2)));
  if (causal)
    scores.masked_fill_(at::ones_like(scores[0], at::kBool).tril().logical_not(), -INFINITY);
  return scores.softmax(2);
}

// What libtorch has for GPUs, sentence by sentence. What it would refuse there is refused here.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt> attention(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& q_offsets,
    const std::optional<at::Tensor>& k_offsets, std::optional<c10::SymInt> longest_query,
    std::optional<c10::SymInt> longest_key, double dropout, int64_t mask, bool wants_sums,
    std::optional<double>, const std::optional<at::Tensor>&, std::optional<int64_t>) {
  TORCH_CHECK(!bias && dropout == 0 && mask <= 1 && query.size(0) == 1 && query.dim() == 4);
  TORCH_CHECK(q_offsets->scalar_type() == at::kInt && k_offsets->scalar_type() == at::kInt);
  TORCH_CHECK(query.stride(3) == 1 && query.stride(2) % 8 == 0);
  ++attentions;
  const at::Tensor q = open_view(query), k = open_view(key), v = open_view(value);
  const at::Tensor from = open_view(*q_offsets), to = open_view(*k_offsets);
  at::Tensor out = at::empty(q.sizes(), q.options());
  for (int64_t s = 0; s + 1 < from.numel(); ++s) {
    const at::Tensor weights =
        attention_weights(of_sentence(q, from, s), of_sentence(k, to, s), mask == 1);
    of_sentence(out, from, s).copy_(at::matmul(weights, of_sentence(v, to, s).to(at::kFloat)));
  }
  const at::Tensor sums = at::empty({wants_sums ? 1 : 0}, q.options().dtype(at::kFloat));
  const at::Tensor seed = at::zeros({}, at::kLong);
  return {on_device(out), on_device(sums), seed, seed, *longest_query, *longest_key};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> attention_backward(
    const at::Tensor& d_out, const at::Tensor& query, const at::Tensor& key,
    const at::Tensor& value, const std::optional<at::Tensor>&, const at::Tensor&,
    const std::optional<at::Tensor>& q_offsets, const std::optional<at::Tensor>& k_offsets,
    c10::SymInt, c10::SymInt, const at::Tensor& sums, double, const at::Tensor&, const at::Tensor&,
    int64_t mask, bool, std::optional<double>, std::optional<int64_t>, std::optional<int64_t>,
    bool) {
  TORCH_CHECK(sums.numel() > 0, "the forward pass did not keep what this needs");
  const at::Tensor from = open_view(*q_offsets), to = open_view(*k_offsets);
  const at::Tensor q = open_view(query), k = open_view(key), v = open_view(value);
  const at::Tensor d = open_view(d_out);
  at::Tensor d_q = at::empty(q.sizes(), q.options()), d_k = at::empty(k.sizes(), k.options());
  at::Tensor d_v = at::empty(v.sizes(), v.options());
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(3)));
  for (int64_t s = 0; s + 1 < from.numel(); ++s) {
    const auto fp32 = [&](const at::Tensor& x, const at::Tensor& offsets) {
      return of_sentence(x, offsets, s).to(at::kFloat);
    };
    const at::Tensor d_s = fp32(d, from),
                     p = attention_weights(fp32(q, from), fp32(k, to), mask == 1);
    const at::Tensor d_p = at::matmul(d_s, fp32(v, to).transpose(1, 2));
    const at::Tensor d_scores = p * (d_p - (d_p * p).sum(2, /*keepdim=*/true)) * scale;
    of_sentence(d_q, from, s).copy_(at::matmul(d_scores, fp32(k, to)));
    of_sentence(d_k, to, s).copy_(at::matmul(d_scores.transpose(1, 2), fp32(q, from)));
    of_sentence(d_v, to, s).copy_(at::matmul(p.transpose(1, 2), d_s));
  }
  return {on_device(d_q), on_device(d_k), on_device(d_v), at::Tensor()};
}

// Batch norm changes its running statistics, of which its schema does not say so.
std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_norm(
    const at::Tensor& x, const std::optional<at::Tensor>& weight,
    const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& mean,
    const std::optional<at::Tensor>& variance, bool training, double momentum, double epsilon) {
  const auto [y, kept_mean, kept_deviation] = at::native_batch_norm(
      open_view(x), open_view_if_any(weight), open_view_if_any(bias), open_view_if_any(mean),
      open_view_if_any(variance), training, momentum, epsilon);
  return {on_device(y), on_device(kept_mean), on_device(kept_deviation)};
}

void on_the_cpu(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  ++within_operation;
  try {
    at::native::cpu_fallback(operation, stack, /*error_on_views=*/true);
  } catch (...) {
    --within_operation;
    throw;
  }
  --within_operation;
}

// In place of NCCL: Gloo, on copies of what is on the device. An operation has ended when it
// returns.
class DeviceBackend final : public c10d::Backend {
 public:
  DeviceBackend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                std::chrono::milliseconds timeout)
      : c10d::Backend(rank, size),
        gloo_(make_gloo_backend(store, rank, size, {.address = "127.0.0.1"}, timeout)) {}

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    return on_copy(tensors, [&](auto& copies) { return gloo_->allreduce(copies, options); });
  }
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override {
    return on_copy(tensors, [&](auto& copies) { return gloo_->broadcast(copies, options); });
  }
  void abort() override {}
  const std::string getBackendName() const override { return "test"; }

 private:
  class Ended final : public c10d::Work {
   public:
    Ended(float milliseconds, std::exception_ptr error) : milliseconds_(milliseconds) {
      finish(std::move(error));
    }
    bool wait(std::chrono::milliseconds) override { return true; }
    float getDuration() const override { return milliseconds_; }

   private:
    float milliseconds_;
  };

  template <class Operation>
  c10::intrusive_ptr<c10d::Work> on_copy(const std::vector<at::Tensor>& tensors,
                                         const Operation& operation) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<at::Tensor> copies;
    for (const at::Tensor& t : tensors) copies.push_back(open_view(t).clone());
    operation(copies)->wait();
    for (std::size_t i = 0; i < tensors.size(); ++i) open_view(tensors[i]).copy_(copies[i]);
    const std::chrono::duration<float, std::milli> taken = std::chrono::steady_clock::now() - begin;
    return c10::make_intrusive<Ended>(taken.count(), error_of_this());
  }

  // With LOCKSTEP_TEST_DEVICE_FAILS=N the N-th operation of the last rank fails: as with NCCL it
  // ends all the same, with what it has.
  std::exception_ptr error_of_this() {
    static const char* const failing = std::getenv("LOCKSTEP_TEST_DEVICE_FAILS");
    ++operations_;
    if (failing == nullptr || getRank() + 1 != getSize()) return nullptr;
    if (operations_ != std::atoi(failing)) return nullptr;
    return std::make_exception_ptr(std::runtime_error("the link of the device is down"));
  }

  c10::intrusive_ptr<c10d::Backend> gloo_;
  int operations_ = 0;
};

// That of CUDA alone, for factors of 16 bits whose sums are fp32.
at::Tensor& addmm_into(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b,
                       at::ScalarType type, const at::Scalar& beta, const at::Scalar& alpha,
                       at::Tensor& out) {
  TORCH_CHECK(type == out.scalar_type() && type == self.scalar_type(), "addmm of other types");
  open_view(out).copy_(
      at::addmm(open_view(self), open_view(a).to(type), open_view(b).to(type), beta, alpha));
  return out;
}

const CudaFunctions* device_functions() {
  static constexpr CudaFunctions functions{
      .torch_version = TORCH_VERSION,
      .cuda_version = 13000,
      .make_nccl_backend =
          [](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
             std::chrono::milliseconds timeout) -> c10::intrusive_ptr<c10d::Backend> {
        return c10::make_intrusive<DeviceBackend>(store, rank, size, timeout);
      },
      .choose_device = [](int) {},
      .kernels = []() -> const GpuKernels* {
        static const GpuKernels kernels = detail::gpu_rows::make_gpu_kernels<DeviceLaunch>();
        return &kernels;
      }};
  return &functions;
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("resize_", &resize);
  library.impl("_local_scalar_dense", &local_scalar);
  library.impl("as_strided", &as_strided);
  library.impl("view", &view);
  library.impl("_reshape_alias", &reshape_alias);
  library.impl("unfold", &unfold);
  library.impl("native_batch_norm", &batch_norm);
  library.impl("addmm.dtype_out", &addmm_into);
  library.impl("_efficient_attention_forward", &attention);
  library.impl("_efficient_attention_backward", &attention_backward);
  library.impl("convolution_overrideable", &convolution);
  library.impl("convolution_backward_overrideable", &convolution_backward);
}

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

}  // namespace

void add_test_device() {
  c10::register_privateuse1_backend("testdevice");
  c10::SetAllocator(kType, &device_allocator());
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  use_as_gpus(kType, devices(), device_functions());
}

DeviceTraffic device_traffic() {
  return {copies_in,  copies_out,   waits,
          bytes_in,   bytes_out,    kernels_run,
          attentions, stream_waits, device_allocator().most_bytes()};
}

}  // namespace lockstep
