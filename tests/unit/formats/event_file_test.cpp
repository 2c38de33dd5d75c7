#include "formats/event_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/crc32c.h"
#include "support/event_reader.h"
#include "support/python.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

void put(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string error_of(const fs::path& path) {
  try {
    read_event_file(path);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(Crc32c, EqualsTheExamplesOfRfc3720) {
  std::string ascending, descending;
  for (int i = 0; i < 32; ++i) {
    ascending.push_back(static_cast<char>(i));
    descending.push_back(static_cast<char>(31 - i));
  }
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(crc32c(ascending), 0x46DD794Eu);
  EXPECT_EQ(crc32c(descending), 0x113FDB5Cu);
  EXPECT_EQ(crc32c(ascending + descending), crc32c(descending, crc32c(ascending)));
}

TEST(EventFile, ComesBackAsWritten) {
  TemporaryFolder folder;
  fs::path path;
  {
    EventWriter writer(folder.path() / "made" / "here");
    path = writer.path();
    writer.scalar("train/loss", 0, 4.25, 1.5e9);
    writer.scalar("train/loss", 1, std::numeric_limits<double>::infinity(), 1.5e9 + 0.125);
    writer.text("run/config", 0, "# Größe\n\n| a | b |", 1.5e9);
    writer.scalar("eval/bleu", int64_t{1} << 40, -37.5, 1.5e9);
    writer.scalar("train/loss", -1, std::nan(""), 1.5e9);
    writer.text("empty", 3, "", 1.5e9);
  }
  EventFile file = read_event_file(path);
  EXPECT_EQ(file.version, "brain.Event:2");
  EXPECT_EQ(file.records, 7);
  EXPECT_FALSE(file.truncated_at);
  ASSERT_EQ(file.scalars.size(), 4u);
  EXPECT_EQ(file.scalars[0].tag, "train/loss");
  EXPECT_EQ(file.scalars[0].step, 0);
  EXPECT_EQ(file.scalars[0].value, 4.25f);
  EXPECT_EQ(file.scalars[1].wall_time, 1.5e9 + 0.125);
  EXPECT_TRUE(std::isinf(file.scalars[1].value));
  EXPECT_EQ(file.scalars[2].step, int64_t{1} << 40);
  EXPECT_EQ(file.scalars[3].step, -1);
  EXPECT_TRUE(std::isnan(file.scalars[3].value));
  ASSERT_EQ(file.texts.size(), 2u);
  EXPECT_EQ(file.texts[0].tag, "run/config");
  EXPECT_EQ(file.texts[0].markdown, "# Größe\n\n| a | b |");
  EXPECT_EQ(file.texts[1].markdown, "");
}

Histogram some_histogram() {
  HistogramCounter counter;
  counter.add(std::vector<float>{-1.5f, 0, 0.25f, 0.25f, 3});
  return counter.result();
}

HyperParameters some_parameters() {
  return {.values = {{"optimizer.lr", 1.5}, {"task.name", "images"}, {"model.flag", true}},
          .metrics = {"eval/acc1", "train/loss"}};
}

TEST(EventFile, KeepsImagesHistogramsAndHyperParameters) {
  TemporaryFolder folder;
  fs::path path;
  RgbImage image(5, 3, {9, 8, 7});
  {
    EventWriter writer(folder.path());
    path = writer.path();
    writer.session_start(some_parameters(), 1.5e9);
    writer.image("eval/confusion", 4, image, 1.5e9 + 1);
    writer.histogram("weights/fc", 6, some_histogram(), 1.5e9 + 2);
    writer.histogram("weights/none", 6, {}, 1.5e9);
    writer.session_end(SessionStatus::kSuccess, 1.5e9 + 3);
  }
  const EventFile file = read_event_file(path);
  EXPECT_EQ(file.records, 6) << "a histogram of nothing is none";
  ASSERT_EQ(file.images.size(), 1u);
  EXPECT_EQ(file.images[0].tag, "eval/confusion");
  EXPECT_EQ(file.images[0].step, 4);
  EXPECT_EQ(file.images[0].wall_time, 1.5e9 + 1);
  EXPECT_EQ(file.images[0].width, 5);
  EXPECT_EQ(file.images[0].height, 3);
  EXPECT_EQ(file.images[0].png, encode_png(image));
  ASSERT_EQ(file.histograms.size(), 1u);
  const Histogram &found = file.histograms[0].values, wanted = some_histogram();
  EXPECT_EQ(file.histograms[0].tag, "weights/fc");
  EXPECT_EQ(file.histograms[0].step, 6);
  EXPECT_EQ(found.min, -1.5);
  EXPECT_EQ(found.max, 3);
  EXPECT_EQ(found.count, 5);
  EXPECT_EQ(found.sum, wanted.sum);
  EXPECT_EQ(found.sum_squares, wanted.sum_squares);
  EXPECT_EQ(found.limits, wanted.limits);
  EXPECT_EQ(found.counts, wanted.counts);
  ASSERT_EQ(file.hyper.size(), 3u);
  EXPECT_EQ(file.hyper[0].tag, kExperimentTag);
  EXPECT_EQ(file.hyper[1].tag, kSessionStartTag);
  EXPECT_EQ(file.hyper[2].tag, kSessionEndTag);
  EXPECT_EQ(decode_session_start(file.hyper[1].data), some_parameters().values);
}

// What tensorboard.plugins.hparams.summary_v2.hparams_pb() of TensorBoard 2.21 gives for
// {"a": 1.5, "c": True, "b": "x"} and the second 1, but for its group name.
TEST(EventFile, EncodesHyperParametersAsTensorBoardDoes) {
  const HyperParameters run{.values = {{"a", 1.5}, {"c", true}, {"b", "x"}}, .metrics = {}};
  const std::string expected(
      "\x1a\x2c"
      "\n\x0e\n\x01"
      "a\x12\t\x11\0\0\0\0\0\0\xf8?"
      "\n\x07\n\x01"
      "c\x12\x02 \x01"
      "\n\x08\n\x01"
      "b\x12\x03\x1a\x01x"
      ")\0\0\0\0\0\0\xf0?",
      46);
  EXPECT_EQ(encode_session_start(run, 1), expected);
}

TEST(EventFile, IsReadableAfterEveryFlush) {
  TemporaryFolder folder;
  EventWriter writer(folder.path());
  EXPECT_EQ(read_event_file(writer.path()).records, 1);  // the version, at once
  writer.scalar("a", 1, 1);
  writer.flush();
  EXPECT_EQ(read_event_file(writer.path()).scalars.size(), 1u);
  for (int step = 0; step < 5000; ++step) writer.scalar("a", step, step);
  EventFile file = read_event_file(writer.path());  // full buffers went out by themselves
  EXPECT_GT(file.scalars.size(), 1000u);
  writer.flush();
  EXPECT_EQ(read_event_file(writer.path()).scalars.size(), 5001u);
}

TEST(EventFile, OfAResumedRunIsANewOne) {
  TemporaryFolder folder;
  EventWriter first(folder.path()), second(folder.path());
  EXPECT_NE(first.path(), second.path());
  EXPECT_EQ(first.path().filename().string().rfind("events.out.tfevents.", 0), 0u);
  EXPECT_EQ(first.path().extension(), ".v2");
}

TEST(EventFile, InAPlaceThatCannotBeAFolderIsAMachineError) {
  TemporaryFolder folder;
  put(folder.path() / "file", "x");
  EXPECT_THROW(EventWriter(folder.path() / "file" / "events"), MachineError);
}

TEST(EventFile, TellsWhereEveryDamagedByteIs) {
  TemporaryFolder folder;
  fs::path path;
  {
    EventWriter writer(folder.path());
    path = writer.path();
    writer.scalar("train/loss", 7, 1.0, 1.5e9);
  }
  std::string whole = read_file(path);
  fs::path bad = folder.path() / "bad";
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] ^= 0x10;
    put(bad, damaged);
    EXPECT_NE(error_of(bad).find("damaged at byte"), std::string::npos) << "byte " << at;
  }
  std::string damaged = whole;
  damaged.back() ^= 1;
  put(bad, damaged);
  EXPECT_NE(error_of(bad).find(fmt::format("at byte {}:", whole.size() - 4)), std::string::npos);
}

TEST(EventFile, CutShortAnywhereKeepsWhatIsWhole) {
  TemporaryFolder folder;
  fs::path path;
  {
    EventWriter writer(folder.path());
    path = writer.path();
    writer.scalar("train/loss", 7, 1.0, 1.5e9);
  }
  const auto whole = static_cast<int64_t>(fs::file_size(path));
  const int64_t second = 16 + 24;  // frame and message of the first record
  for (int64_t size = whole - 1; size >= 0; --size) {
    fs::resize_file(path, size);
    EventFile file = read_event_file(path);
    EXPECT_EQ(file.records, size >= second ? 1 : 0) << size;
    EXPECT_TRUE(file.scalars.empty()) << size;
    bool between = size == 0 || size == second;
    EXPECT_EQ(file.truncated_at.has_value(), !between) << size;
    EXPECT_EQ(file.truncated_at.value_or(0), !between && size > second ? second : 0) << size;
  }
}

TEST(EventFile, WithAFrameOfSomethingElseIsRefused) {
  TemporaryFolder folder;
  std::string message = "\x0B no event";  // wire type 3, a group: no version of the format has it
  std::string length(8, '\0');
  length[0] = static_cast<char>(message.size());
  auto crc = [](std::string_view of) {
    uint32_t value = masked_crc32c(of);
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  put(folder.path() / "x", length + crc(length) + message + crc(message));
  EXPECT_NE(error_of(folder.path() / "x").find("record at byte 0 is no TensorBoard event"),
            std::string::npos);
}

TEST(EventFile, OfOtherWritersReadsAsTheySay) {
  fs::path reference = fs::path(LOCKSTEP_SHARED) / "data/reference/tensorboard";
  if (!fs::exists(reference)) GTEST_SKIP() << "no reference data at " << reference;
  EventFile file = read_event_file(reference / "events.out.tfevents.sample-tensorboardX");
  Json expected = Json::parse(read_file(reference / "expected.json"))["scalars"];
  EXPECT_EQ(file.version, "brain.Event:2");
  EXPECT_EQ(file.records, 57);
  ASSERT_EQ(file.scalars.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(file.scalars[i].tag, expected[i][0].get<std::string>());
    EXPECT_EQ(file.scalars[i].step, expected[i][1]);
    EXPECT_EQ(file.scalars[i].value, expected[i][2].get<float>());
  }
  ASSERT_EQ(file.texts.size(), 1u);
  EXPECT_EQ(file.texts[0].tag, "config/text_summary");
  EXPECT_EQ(file.texts[0].markdown, "{\"lr\": 0.1}");

  EventFile other = read_event_file(reference / "events.out.tfevents.1687811641.v2");
  ASSERT_EQ(other.scalars.size(), 1u);
  EXPECT_EQ(other.scalars[0].tag, "hello");
  EXPECT_EQ(other.scalars[0].value, 1.0f);
}

TEST(EventFile, RoundTripsThroughTensorBoard) {
  if (!python_has("tensorboard")) GTEST_SKIP() << "no tensorboard for " << LOCKSTEP_PYTHON;
  TemporaryFolder folder;
  {
    EventWriter writer(folder.path());
    for (int step = 0; step < 300; ++step) {
      writer.scalar("train/loss", step, 1.0 / (step + 1), 1.5e9 + step);
    }
    writer.scalar("speed/tokens_per_second", 200, 24100.5, 1.5e9);
    writer.text("run/config", 0, "    [task]\n    name = \"translation\" # Ü", 1.5e9);
    writer.session_start(some_parameters(), 1.5e9);
    writer.session_end(SessionStatus::kSuccess, 1.5e9 + 60);
    writer.image("eval/confusion", 4, RgbImage(5, 3, {9, 8, 7}), 1.5e9);
    writer.histogram("weights/fc", 6, some_histogram(), 1.5e9);
  }
  PythonResult result = run_parity_script("read_events.py", "'" + folder.path().string() + "'");
  ASSERT_EQ(result.status, 0) << result.errors;
  Json found = Json::parse(result.output);
  const Json& losses = found["scalars"]["train/loss"];
  ASSERT_EQ(losses.size(), 300u);
  for (int step = 0; step < 300; ++step) {
    EXPECT_EQ(losses[step][0], step);
    EXPECT_EQ(losses[step][1], 1.5e9 + step);
    EXPECT_EQ(losses[step][2].get<float>(), static_cast<float>(1.0 / (step + 1)));
  }
  EXPECT_EQ(found["scalars"]["speed/tokens_per_second"], Json::parse("[[200, 1.5e9, 24100.5]]"));
  EXPECT_EQ(found["plugins"]["run/config"], "text");
  EXPECT_EQ(found["texts"]["run/config"][0][2][0], "    [task]\n    name = \"translation\" # Ü");
  EXPECT_EQ(found["file_version"], 2.0);
  EXPECT_EQ(found["images"]["eval/confusion"], Json::parse("[[4, 5, 3]]"));
  const Json& histogram = found["histograms"]["weights/fc"].at(0);
  const Histogram wanted = some_histogram();
  EXPECT_EQ(histogram.at("step"), 6);
  EXPECT_EQ(histogram.at("num"), 5.0);
  EXPECT_EQ(histogram.at("min"), -1.5);
  EXPECT_EQ(histogram.at("max"), 3.0);
  EXPECT_EQ(histogram.at("sum"), wanted.sum);
  EXPECT_EQ(histogram.at("bucket_limit"), Json(wanted.limits));
  EXPECT_EQ(histogram.at("bucket"), Json(wanted.counts));
  const Json& hyper = found["hyper"];
  EXPECT_EQ(hyper.at("values"), Json::parse(R"({"optimizer.lr": 1.5, "task.name": "images",
                                               "model.flag": true})"));
  EXPECT_EQ(hyper.at("start"), 1.5e9);
  EXPECT_EQ(hyper.at("names"), Json::parse(R"({"optimizer.lr": 3, "task.name": 1,
                                              "model.flag": 2})"));
  EXPECT_EQ(hyper.at("metrics"), Json::parse(R"(["eval/acc1", "train/loss"])"));
  EXPECT_EQ(hyper.at("status"), 1) << "success";
}

}  // namespace
}  // namespace lockstep
