#include "formats/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "formats/crc32c.h"
#include "formats/event_fields.h"
#include "formats/proto_message.h"

namespace lockstep {

namespace {

constexpr std::size_t kFlushBytes = 64 * 1024;
constexpr std::string_view kVersion = "brain.Event:2";

// Bytes of a fixed-width number.
template <typename Value>
std::string raw(Value value) {
  return {reinterpret_cast<const char*>(&value), sizeof(Value)};
}

ProtoWriter event_header(double wall_time, int64_t step) {
  ProtoWriter out;
  out.real(detail::kEventWallTime, wall_time);
  if (step != 0) out.integer(detail::kEventStep, step);  // proto3 leaves zeros out
  return out;
}

ProtoWriter plugin_metadata(std::string_view name, std::string_view data) {
  ProtoWriter plugin, out;
  plugin.bytes(detail::kPluginName, name);
  if (!data.empty()) plugin.bytes(detail::kPluginContent, data);
  out.message(detail::kMetadataPlugin, plugin);
  return out;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

// Opens a file that did not exist before: two writers in one second get two names.
int create_new(const fs::path& folder, fs::path& path) {
  auto seconds = static_cast<int64_t>(seconds_since_epoch());
  while (true) {
    path = folder / fmt::format("events.out.tfevents.{}.{}.{}.v2", seconds, host_name(), getpid());
    int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    if (fd >= 0) return fd;
    if (errno != EEXIST) {
      throw MachineError("{}: cannot be created: {}", path.string(), std::strerror(errno));
    }
    ++seconds;
  }
}

}  // namespace

double seconds_since_epoch() {
  using std::chrono::system_clock;
  return std::chrono::duration<double>(system_clock::now().time_since_epoch()).count();
}

EventWriter::EventWriter(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw MachineError("{}: cannot be created: {}", folder.string(), error.message());
  descriptor_ = create_new(folder, path_);
  record(event_header(seconds_since_epoch(), 0).bytes(detail::kEventVersion, kVersion).text());
  try {
    flush();
  } catch (...) {
    ::close(descriptor_);  // no destructor runs for an object that was not made
    throw;
  }
}

EventWriter::~EventWriter() {
  try {
    flush();
  } catch (const Error& error) {
    log_warning("{}", error.what());
  }
  ::close(descriptor_);
}

void EventWriter::scalar(std::string_view tag, int64_t step, double value, double wall_time) {
  ProtoWriter fields;
  fields.real32(detail::kValueSimple, static_cast<float>(value));
  summary(tag, {step, wall_time}, fields.text());
}

void EventWriter::text(std::string_view tag, int64_t step, std::string_view markdown,
                       double wall_time) {
  // The text plugin wants a tensor of strings, here of shape [1], and its name in the metadata.
  ProtoWriter dimension, shape, tensor, fields;
  dimension.integer(detail::kDimensionSize, 1);
  shape.message(detail::kShapeDimension, dimension);
  tensor.integer(detail::kTensorType, kStringType).message(detail::kTensorShape, shape);
  tensor.bytes(detail::kTensorStrings, markdown);
  fields.message(detail::kValueTensor, tensor);
  fields.message(detail::kValueMetadata, plugin_metadata(kTextPlugin, ""));
  summary(tag, {step, wall_time}, fields.text());
}

void EventWriter::image(std::string_view tag, int64_t step, const RgbImage& picture,
                        double wall_time) {
  ProtoWriter image, fields;
  image.integer(detail::kImageHeight, picture.height).integer(detail::kImageWidth, picture.width);
  image.integer(detail::kImageColors, 3).bytes(detail::kImageFile, encode_png(picture));
  fields.message(detail::kValueImage, image);
  summary(tag, {step, wall_time}, fields.text());
}

void EventWriter::histogram(std::string_view tag, int64_t step, const Histogram& values,
                            double wall_time) {
  if (values.count == 0) return;
  ProtoWriter histogram, fields;
  histogram.real(detail::kHistogramMin, values.min).real(detail::kHistogramMax, values.max);
  histogram.real(detail::kHistogramCount, values.count).real(detail::kHistogramSum, values.sum);
  histogram.real(detail::kHistogramSquares, values.sum_squares);
  histogram.packed(detail::kHistogramLimits, values.limits);
  histogram.packed(detail::kHistogramCounts, values.counts);
  fields.message(detail::kValueHistogram, histogram);
  summary(tag, {step, wall_time}, fields.text());
}

void EventWriter::session_start(const HyperParameters& run, double wall_time) {
  plugin(kExperimentTag, wall_time, encode_experiment(run, wall_time));
  plugin(kSessionStartTag, wall_time, encode_session_start(run, wall_time));
}

void EventWriter::session_end(SessionStatus status, double wall_time) {
  plugin(kSessionEndTag, wall_time, encode_session_end(status, wall_time));
}

// The tensor beside the metadata is floats of shape [0], as TensorBoard's own writer has it.
void EventWriter::plugin(std::string_view tag, double wall_time, std::string_view data) {
  ProtoWriter shape, tensor, fields;
  shape.bytes(detail::kShapeDimension, "");
  tensor.integer(detail::kTensorType, kFloatType).message(detail::kTensorShape, shape);
  fields.message(detail::kValueTensor, tensor);
  fields.message(detail::kValueMetadata, plugin_metadata(kHyperPlugin, data));
  summary(tag, {0, wall_time}, fields.text());
}

void EventWriter::summary(std::string_view tag, Moment moment, std::string_view value) {
  ProtoWriter tagged, list;
  tagged.bytes(detail::kValueTag, tag).append(value);
  list.message(detail::kSummaryValue, tagged);
  record(event_header(moment.wall_time, moment.step).message(detail::kEventSummary, list).text());
}

void EventWriter::record(std::string_view message) {
  const std::string length = raw(static_cast<uint64_t>(message.size()));
  pending_ += length + raw(masked_crc32c(length));
  pending_ += message;
  pending_ += raw(masked_crc32c(message));
  if (pending_.size() >= kFlushBytes) flush();
}

void EventWriter::flush() {
  std::size_t done = 0;
  while (done < pending_.size()) {
    ssize_t n = ::write(descriptor_, pending_.data() + done, pending_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      int reason = errno;
      pending_.erase(0, done);  // a later flush goes on where this one stopped
      throw MachineError("{}: cannot be written: {}", path_.string(), std::strerror(reason));
    }
    done += static_cast<std::size_t>(n);
  }
  pending_.clear();
}

}  // namespace lockstep
