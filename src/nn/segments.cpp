#include "nn/segments.h"

#include <algorithm>

#include "nn/upload.h"

namespace lockstep {

Segments make_segments(const std::vector<int32_t>& lengths, torch::Device device) {
  Segments segments;
  segments.offsets.reserve(lengths.size() + 1);
  for (int32_t length : lengths) {
    TORCH_CHECK(length >= 1, "a sentence of ", length, " tokens");
    segments.offsets.push_back(segments.offsets.back() + length);
    segments.longest = std::max<int64_t>(segments.longest, length);
  }
  torch::Tensor rows = torch::empty({segments.tokens()}, torch::kInt64);
  int64_t* row = rows.data_ptr<int64_t>();
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    for (int32_t i = 0; i < lengths[s]; ++i) {
      *row++ = static_cast<int64_t>(s) * segments.longest + i;
    }
  }
  segments.padded_rows = upload(rows, device);
  if (!device.is_cpu()) {
    segments.offsets_there = upload(torch::tensor(segments.offsets, torch::kInt32), device);
  }
  return segments;
}

torch::Tensor first_rows(const Segments& segments, torch::Device device) {
  const torch::Tensor offsets = torch::tensor(segments.offsets, torch::kInt64);
  return upload(offsets.narrow(0, 0, segments.sentences()), device);
}

torch::Tensor pad_segments(const torch::Tensor& packed, const Segments& segments) {
  TORCH_CHECK(packed.size(0) == segments.tokens(), packed.size(0), " rows for ", segments.tokens(),
              " tokens");
  std::vector<int64_t> shape = packed.sizes().vec();
  shape[0] = segments.sentences() * segments.longest;
  torch::Tensor padded =
      torch::zeros(shape, packed.options()).index_copy(0, segments.padded_rows, packed);
  shape[0] = segments.longest;
  shape.insert(shape.begin(), segments.sentences());
  return padded.view(shape);
}

torch::Tensor pack_segments(const torch::Tensor& padded, const Segments& segments) {
  TORCH_CHECK(padded.size(0) == segments.sentences() && padded.size(1) == segments.longest,
              "not the padded shape of these segments");
  return padded.flatten(0, 1).index_select(0, segments.padded_rows);
}

torch::Tensor segment_mask(const Segments& segments, torch::Device device) {
  torch::Tensor mask = torch::zeros({segments.sentences() * segments.longest},
                                    torch::TensorOptions().dtype(torch::kBool).device(device));
  mask.index_fill_(0, segments.padded_rows, true);
  return mask.view({segments.sentences(), segments.longest});
}

}  // namespace lockstep
