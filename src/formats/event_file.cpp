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
#include "formats/protobuf.h"

namespace lockstep {

namespace {

using protozero::pbf_writer;

constexpr std::size_t kEventFlushBytes = 64 * 1024;
constexpr std::string_view kEventVersion = "brain.Event:2";

// Returns the bytes of a fixed-width number.
template <typename Value>
std::string raw(Value value) {
  return {reinterpret_cast<const char*>(&value), sizeof(Value)};
}

void put_event_header(double wall_time, int64_t step, pbf_writer& event) {
  event.add_double(detail::kEventWallTime, wall_time);
  if (step != 0) event.add_int64(detail::kEventStep, step);  // proto3 leaves zeros out
}

void put_plugin(std::string_view name, std::string_view data, pbf_writer& value) {
  pbf_writer metadata(value, detail::kValueMetadata);
  pbf_writer plugin(metadata, detail::kMetadataPlugin);
  plugin.add_bytes(detail::kPluginName, name);
  if (!data.empty()) plugin.add_bytes(detail::kPluginContent, data);
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

// Creates a file that did not exist before. Two writers in the same second get two names.
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
  std::string first;
  pbf_writer event(first);
  put_event_header(seconds_since_epoch(), 0, event);
  event.add_bytes(detail::kEventVersion, kEventVersion);
  record(first);
  try {
    flush();
  } catch (...) {
    ::close(descriptor_);  // no destructor runs when a constructor throws
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
  std::string fields;
  pbf_writer(fields).add_float(detail::kValueSimple, static_cast<float>(value));
  summary(tag, {step, wall_time}, fields);
}

void EventWriter::text(std::string_view tag, int64_t step, std::string_view markdown,
                       double wall_time) {
  // The text plugin expects a tensor of strings, here of shape [1], and its own name in the
  // metadata.
  std::string fields;
  pbf_writer value(fields);
  {
    pbf_writer tensor(value, detail::kValueTensor);
    tensor.add_enum(detail::kTensorType, kStringType);
    {
      pbf_writer shape(tensor, detail::kTensorShape);
      pbf_writer(shape, detail::kShapeDimension).add_int64(detail::kDimensionSize, 1);
    }
    tensor.add_bytes(detail::kTensorStrings, markdown);
  }
  put_plugin(kTextPlugin, "", value);
  summary(tag, {step, wall_time}, fields);
}

void EventWriter::image(std::string_view tag, int64_t step, const RgbImage& picture,
                        double wall_time) {
  std::string fields;
  pbf_writer value(fields);
  {
    pbf_writer image(value, detail::kValueImage);
    image.add_int64(detail::kImageHeight, picture.height);
    image.add_int64(detail::kImageWidth, picture.width);
    image.add_int64(detail::kImageColors, 3);
    image.add_bytes(detail::kImageFile, encode_png(picture));
  }
  summary(tag, {step, wall_time}, fields);
}

void EventWriter::histogram(std::string_view tag, int64_t step, const Histogram& values,
                            double wall_time) {
  if (values.count == 0) return;
  std::string fields;
  pbf_writer value(fields);
  {
    pbf_writer histogram(value, detail::kValueHistogram);
    histogram.add_double(detail::kHistogramMin, values.min);
    histogram.add_double(detail::kHistogramMax, values.max);
    histogram.add_double(detail::kHistogramCount, values.count);
    histogram.add_double(detail::kHistogramSum, values.sum);
    histogram.add_double(detail::kHistogramSquares, values.sum_squares);
    histogram.add_packed_double(detail::kHistogramLimits, values.limits.begin(),
                                values.limits.end());
    histogram.add_packed_double(detail::kHistogramCounts, values.counts.begin(),
                                values.counts.end());
  }
  summary(tag, {step, wall_time}, fields);
}

void EventWriter::session_start(const HyperParameters& run, double wall_time) {
  plugin(kExperimentTag, wall_time, encode_experiment(run, wall_time));
  plugin(kSessionStartTag, wall_time, encode_session_start(run, wall_time));
}

void EventWriter::session_end(SessionStatus status, double wall_time) {
  plugin(kSessionEndTag, wall_time, encode_session_end(status, wall_time));
}

// The tensor beside the metadata has floats and shape [0], as TensorBoard's own writer makes it.
void EventWriter::plugin(std::string_view tag, double wall_time, std::string_view data) {
  std::string fields;
  pbf_writer value(fields);
  {
    pbf_writer tensor(value, detail::kValueTensor);
    tensor.add_enum(detail::kTensorType, kFloatType);
    pbf_writer(tensor, detail::kTensorShape)
        .add_message(detail::kShapeDimension, std::string_view());
  }
  put_plugin(kHyperPlugin, data, value);
  summary(tag, {0, wall_time}, fields);
}

void EventWriter::summary(std::string_view tag, Moment moment, std::string_view value) {
  std::string tagged, message;
  pbf_writer(tagged).add_bytes(detail::kValueTag, tag);
  tagged += value;
  pbf_writer event(message);
  put_event_header(moment.wall_time, moment.step, event);
  pbf_writer(event, detail::kEventSummary).add_message(detail::kSummaryValue, tagged);
  record(message);
}

void EventWriter::record(std::string_view message) {
  const std::string length = raw(static_cast<uint64_t>(message.size()));
  pending_ += length + raw(masked_crc32c(length));
  pending_ += message;
  pending_ += raw(masked_crc32c(message));
  if (pending_.size() >= kEventFlushBytes) flush();
}

void EventWriter::flush() {
  std::size_t done = 0;
  while (done < pending_.size()) {
    ssize_t n = ::write(descriptor_, pending_.data() + done, pending_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      int reason = errno;
      pending_.erase(0, done);  // a later flush continues where this one stopped
      throw MachineError("{}: cannot be written: {}", path_.string(), std::strerror(reason));
    }
    done += static_cast<std::size_t>(n);
  }
  pending_.clear();
}

}  // namespace lockstep
