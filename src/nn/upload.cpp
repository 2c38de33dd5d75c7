#include "nn/upload.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace lockstep {
namespace {

// Of this thread: what upload() made within a call of UploadStream::collect; null outside of one.
thread_local std::vector<torch::Tensor>* collected = nullptr;

}  // namespace

torch::Tensor upload(const torch::Tensor& host, torch::Device device) {
  if (device.is_cpu()) return host;
  torch::Tensor there =
      (host.is_pinned() ? host : host.pin_memory()).to(device, /*non_blocking=*/true);
  if (collected != nullptr) collected->push_back(there);
  return there;
}

void Uploads::await() const {
  if (done_ == nullptr) return;
  const c10::impl::VirtualGuardImpl device(done_->device_type());
  const c10::Stream stream = device.getStream(done_->device());
  done_->block(stream);
  for (const torch::Tensor& t : tensors_) {
    device.recordDataPtrOnStream(t.storage().data_ptr(), stream);
  }
}

Uploads UploadStream::collect(torch::Device device, const std::function<void()>& make) {
  Uploads out;
  if (device.is_cpu()) {
    make();
    return out;
  }
  if (!stream_) stream_ = c10::impl::VirtualGuardImpl(device.type()).getNewStream(device, 0);
  const c10::StreamGuard guard(*stream_);
  collected = &out.tensors_;
  try {
    make();
  } catch (...) {
    collected = nullptr;
    throw;
  }
  collected = nullptr;
  out.done_ = std::make_shared<c10::Event>(device.type());
  out.done_->record(*stream_);
  return out;
}

}  // namespace lockstep
