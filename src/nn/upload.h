// Brings what was made on the host to the device of the computation.
#pragma once

#include <c10/core/Event.h>
#include <torch/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace lockstep {

// Returns a copy of `host` on `device`, through pinned memory, so that the host does not wait for
// the device; on the CPU `host` itself. Work that is queued later on the same stream finds it
// there.
torch::Tensor upload(const torch::Tensor& host, torch::Device device);

// What a thread brought to a device on a stream of its own, beside what the device computed.
class Uploads {
 public:
  // Makes the calling thread's stream wait for the copies; the host does not wait. Their memory is
  // not used for others before that stream has done all that is queued there when the tensors end.
  void await() const;

 private:
  friend class UploadStream;
  std::vector<torch::Tensor> tensors_;
  std::shared_ptr<c10::Event> done_;  // null: nothing to wait for
};

// A stream of a device for copies. Copies of it are the same stream.
class UploadStream {
 public:
  // Calls make(), in which upload() takes this stream; on the CPU that makes no difference.
  Uploads collect(torch::Device device, const std::function<void()>& make);

 private:
  std::optional<c10::Stream> stream_;  // made when it is first needed
};

}  // namespace lockstep
