#include "formats/tensor_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "support/python.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr DType kAll[] = {DType::kU8,  DType::kF32, DType::kBool, DType::kI64, DType::kBF16,
                          DType::kI16, DType::kF64, DType::kI8,   DType::kI32, DType::kF16};

std::string_view text_of(std::span<const std::byte> data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

// One tensor of every type, 3 x 5, and a scalar and an empty one; owns the data.
struct Sample {
  std::vector<std::vector<std::byte>> storage;
  std::vector<TensorEntry> entries;

  Sample() {
    storage.reserve(12);
    for (DType dtype : kAll) add(fmt::format("layer.{}", dtype_name(dtype)), dtype, {3, 5});
    add("scalar Ü \"quoted\"", DType::kF32, {});
    add("empty", DType::kF16, {0, 7});
  }
  void add(std::string name, DType dtype, std::vector<int64_t> shape) {
    int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    std::vector<std::byte>& data = storage.emplace_back(count * dtype_bytes(dtype));
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i] = static_cast<std::byte>(dtype == DType::kBool ? i % 2 : 7 * i + storage.size());
    }
    entries.push_back({std::move(name), dtype, std::move(shape), data});
  }
};

void expect_equal(const TensorFile& file, const Sample& sample) {
  ASSERT_EQ(file.entries().size(), sample.entries.size());
  for (const TensorEntry& expected : sample.entries) {
    const TensorEntry& found = file.get(expected.name);
    EXPECT_EQ(found.dtype, expected.dtype) << expected.name;
    EXPECT_EQ(found.shape, expected.shape) << expected.name;
    EXPECT_EQ(text_of(found.data), text_of(expected.data)) << expected.name;
  }
}

// A file of this header and this many bytes of data; the text of the error that opening it gives.
std::string error_for(std::string_view header, std::size_t data_bytes,
                      std::optional<uint64_t> claimed_length = std::nullopt) {
  TemporaryFolder folder;
  fs::path path = folder.path() / "x.safetensors";
  uint64_t length = claimed_length.value_or(header.size());
  std::string bytes(reinterpret_cast<const char*>(&length), 8);
  bytes += header;
  bytes.append(data_bytes, '\0');
  write_file(path, bytes);
  try {
    TensorFile file(path);
  } catch (const DataError& error) {
    std::string text = error.what();
    EXPECT_EQ(text.rfind(path.string() + ": ", 0), 0u) << text;
    return text.substr(path.string().size() + 2);
  }
  return "no error";
}

TEST(TensorFile, ComesBackAsWritten) {
  TemporaryFolder folder;
  fs::path path = folder.path() / "model.safetensors";
  Sample sample;
  write_tensor_file(path, sample.entries, {{"format", "lockstep"}, {"step", "40000"}});
  TensorFile file(path);
  expect_equal(file, sample);
  EXPECT_EQ(file.metadata().at("step"), "40000");
  EXPECT_EQ(file.metadata().size(), 2u);
  EXPECT_FALSE(fs::exists(path.string() + ".tmp"));
  for (const TensorEntry& entry : file.entries()) {
    auto address = reinterpret_cast<uintptr_t>(entry.data.data());
    EXPECT_EQ(address % dtype_bytes(entry.dtype), 0u) << entry.name;
  }
}

TEST(TensorFile, WithNothingInItIsValid) {
  TemporaryFolder folder;
  write_tensor_file(folder.path() / "x", {});
  TensorFile file(folder.path() / "x");
  EXPECT_TRUE(file.entries().empty());
  EXPECT_TRUE(file.metadata().empty());
}

TEST(TensorFile, StaysReadableWhenMoved) {
  TemporaryFolder folder;
  Sample sample;
  write_tensor_file(folder.path() / "x", sample.entries);
  TensorFile first(folder.path() / "x");
  TensorFile second(std::move(first));
  expect_equal(second, sample);
}

TEST(TensorFile, NamesTheNearestTensor) {
  TemporaryFolder folder;
  Sample sample;
  write_tensor_file(folder.path() / "x", sample.entries);
  TensorFile file(folder.path() / "x");
  EXPECT_EQ(file.find("layer.F33"), nullptr);
  try {
    file.get("layr.BOOL");
    FAIL() << "found a tensor that is not there";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("no tensor \"layr.BOOL\"; did you mean layer.BOOL?"),
              std::string::npos)
        << error.what();
  }
}

TEST(TensorFile, RefusesEntriesThatMakeNoFile) {
  TemporaryFolder folder;
  fs::path path = folder.path() / "x";
  std::byte four[4] = {};
  EXPECT_THROW(write_tensor_file(path, {{"a", DType::kF32, {2}, four}}), std::invalid_argument);
  EXPECT_THROW(write_tensor_file(path, {{"a", DType::kF32, {-1}, four}}), std::invalid_argument);
  EXPECT_THROW(write_tensor_file(path, {{"__metadata__", DType::kF32, {1}, four}}),
               std::invalid_argument);
  TensorEntry good{"a", DType::kF32, {1}, four};
  EXPECT_THROW(write_tensor_file(path, {good, good}), std::invalid_argument);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(TensorFile, LeavesTheOldFileWhenTheDiskRefuses) {
  TemporaryFolder folder;
  fs::path path = folder.path() / "x";
  Sample sample;
  write_tensor_file(path, sample.entries);
  std::vector<std::byte> big(1 << 20);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);  // the write then fails, as on a full disk
  rlimit small{100'000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(write_tensor_file(path, {{"big", DType::kU8, {1 << 20}, big}}), MachineError);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  expect_equal(TensorFile(path), sample);
  EXPECT_FALSE(fs::exists(path.string() + ".tmp"));
  EXPECT_THROW(write_tensor_file(folder.path() / "none" / "x", sample.entries), MachineError);
}

TEST(TensorFile, CutShortAnywhereIsRefused) {
  TemporaryFolder folder;
  fs::path path = folder.path() / "x";
  Sample sample;
  write_tensor_file(path, sample.entries);
  auto whole = static_cast<int64_t>(fs::file_size(path));
  fs::resize_file(path, whole + 1);
  EXPECT_THROW(TensorFile{path}, DataError);
  for (int64_t size = whole - 1; size >= 0; --size) {
    fs::resize_file(path, size);
    EXPECT_THROW(TensorFile{path}, DataError) << size;
  }
  EXPECT_THROW(TensorFile{folder.path() / "absent"}, DataError);
}

TEST(TensorFile, SaysWhatIsWrongWithTheHeader) {
  EXPECT_EQ(error_for("{}", 0, 50), "the header claims 50 bytes, the file has 2 after its length");
  EXPECT_NE(error_for("{}", 0, ~uint64_t{0}).find("at most 100000000 are allowed"),
            std::string::npos);
  EXPECT_NE(error_for("{\"a\":", 0).find("no valid JSON"), std::string::npos);
  EXPECT_NE(error_for("{\"\xFF\":1}", 0).find("no valid JSON"), std::string::npos);
  EXPECT_EQ(error_for("[1]", 0), "the header is no JSON object");
  EXPECT_EQ(error_for(R"({"__metadata__":{"a":1}})", 0), "__metadata__: expected strings only");
  EXPECT_EQ(error_for(R"({"__metadata__":[]})", 0), "__metadata__: expected strings only");
  EXPECT_EQ(error_for(R"({"a":3})", 0), "tensor a: expected a dtype in the header, found 3");
  EXPECT_NE(error_for(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4)
                .find("tensor a: expected a shape in the header"),
            std::string::npos);
  EXPECT_NE(error_for(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4)
                .find("tensor a: expected data_offsets [begin, end]"),
            std::string::npos);
  EXPECT_EQ(error_for(R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", 4),
            "tensor a: dtype \"F31\" is unknown "
            "(F64, I64, F32, I32, F16, BF16, I16, I8, U8, BOOL)");
  std::string entry = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_EQ(error_for("{" + entry + "," + entry + "}", 4), "tensor a appears twice in the header");
}

TEST(TensorFile, RefusesAHeaderThatNestsDeeply) {
  const std::string deep = "{\"a\":" + std::string(400'000, '[') + std::string(400'000, ']') + "}";
  EXPECT_EQ(error_for(deep, 0), "the header nests deeper than names, fields and lists");
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSlower = 10;  // than the program that is shipped
#else
constexpr int kSlower = 1;
#endif

// Time that grew with the square of the names was half a minute here.
TEST(TensorFile, WithManyNamesIsWrittenAndReadInTwoSeconds) {
  TemporaryFolder folder;
  const fs::path path = folder.path() / "many";
  std::vector<TensorEntry> entries;
  for (int i = 0; i < 120'000; ++i) {
    entries.push_back({fmt::format("layers.{:06}.weight", i), DType::kU8, {0}, {}});
  }
  const std::clock_t start = std::clock();
  write_tensor_file(path, entries);
  EXPECT_EQ(TensorFile(path).entries().size(), entries.size());
  EXPECT_LT(std::clock() - start, kSlower * 2 * CLOCKS_PER_SEC);
}

TEST(TensorFile, SaysWhatIsWrongWithTheLayout) {
  EXPECT_EQ(error_for(R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,20]}})", 20),
            "tensor a: F32 [2, 3] takes 24 bytes, the header gives it 20");
  EXPECT_EQ(error_for(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296,0],)"
                      R"("data_offsets":[0,0]}})",
                      0),
            "tensor a: U8 [4294967296, 4294967296, 0] takes more than 2^64 bytes, "
            "the header gives it 0");
  EXPECT_EQ(error_for(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}})", 8),
            "tensor a: its data are bytes 8 to 4, the file has 8 bytes of data");
  EXPECT_EQ(error_for(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7),
            "tensor a: its data are bytes 0 to 8, the file has 7 bytes of data");
  EXPECT_EQ(error_for(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                      R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                      8),
            "tensor b: its data begin at byte 4, expected 8: they overlap the tensor before");
  EXPECT_EQ(error_for(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                      R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
                      12),
            "tensor b: its data begin at byte 8, expected 4: a hole after the tensor before");
  EXPECT_EQ(error_for(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 6),
            "the tensors take 4 bytes of data, the file has 6");
}

TEST(TensorFile, RoundTripsThroughThePythonPackage) {
  if (!python_has("safetensors")) GTEST_SKIP() << "no safetensors for " << LOCKSTEP_PYTHON;
  TemporaryFolder folder;
  std::string ours = (folder.path() / "ours").string(),
              theirs = (folder.path() / "theirs").string();
  Sample sample;
  write_tensor_file(ours, sample.entries, {{"step", "1"}});
  PythonResult result =
      run_parity_script("tensor_files.py", fmt::format("'{}' '{}'", ours, theirs));
  ASSERT_EQ(result.status, 0) << result.errors;
  Json read = Json::parse(result.output);
  ASSERT_EQ(read.size(), sample.entries.size());
  for (const TensorEntry& entry : sample.entries) {
    const Json& found = read.at(entry.name);
    EXPECT_EQ(found["dtype"], dtype_name(entry.dtype)) << entry.name;
    EXPECT_EQ(found["shape"].get<std::vector<int64_t>>(), entry.shape) << entry.name;
    std::string hex;
    for (std::byte b : entry.data) hex += fmt::format("{:02x}", static_cast<unsigned>(b));
    EXPECT_EQ(found["data"], hex) << entry.name;
  }
  TensorFile back(theirs);
  expect_equal(back, sample);
  EXPECT_EQ(back.metadata().at("written by"), "safetensors");
}

}  // namespace
}  // namespace lockstep
