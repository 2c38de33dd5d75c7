#include "formats/pickle.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace lockstep {
namespace {

using namespace std::string_literals;

Pickle read(const std::string& text) {
  return read_pickle(std::as_bytes(std::span(text)), "data.pkl");
}

TEST(Pickle, ReadsPlainValues) {
  const Pickle value = read("\x80\x02}(X\1\0\0\0aK\x07X\1\0\0\0bJ\xfe\xff\xff\xffu."s);
  const auto& items = std::get<PickleDict>(*value.root).items;
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(std::get<std::string>(*items[0].first), "a");
  EXPECT_EQ(std::get<int64_t>(*items[0].second), 7);
  EXPECT_EQ(std::get<int64_t>(*items[1].second), -2);
  EXPECT_EQ(std::get<int64_t>(*read("\x80\x02\x8a\x02\x00\xff."s).root), -256);
  EXPECT_EQ(std::get<double>(*read("G\x3f\xf8\0\0\0\0\0\0."s).root), 1.5);
}

TEST(Pickle, MakesTensorsOfTheirParts) {
  const Pickle value = read(
      "\x80\x02"
      "ctorch._utils\n_rebuild_tensor_v2\n"
      "(("
      "X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"
      "0X\3\0\0\0cpuK\x06tQK\0K\x02K\x03\x86K\x03K\x01\x86\x89"
      "ccollections\nOrderedDict\n)RtR."s);
  const auto& tensor = std::get<PickleTensor>(*value.root);
  EXPECT_EQ(tensor.storage.dtype, DType::kF32);
  EXPECT_EQ(tensor.storage.key, "0");
  EXPECT_EQ(tensor.storage.elements, 6);
  EXPECT_EQ(tensor.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(tensor.stride, (std::vector<int64_t>{3, 1}));
}

TEST(Pickle, MakesNumPysArraysOfTheirParts) {
  for (const std::string module : {"numpy.core.multiarray", "numpy._core.multiarray"}) {
    const Pickle value = read(
        "\x80\x03"
        "c" +
        module +
        "\n_reconstruct\ncnumpy\nndarray\nK\0\x85"
        "C\1b\x87R"
        "(K\1K\2K\3\x86"
        "cnumpy\ndtype\nU\2u1\x89\x88\x87R(K\3U\1|NNNtb\x89"
        "C\6abcdeftb."s);
    const auto& array = std::get<PickleArray>(*value.root);
    EXPECT_EQ(array.type, "u1");
    EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 3}));
    EXPECT_FALSE(array.columns_first);
    EXPECT_EQ(array.bytes, "abcdef");
  }
  // An array of objects has a list where others have bytes.
  EXPECT_ERROR(
      read("cnumpy.core.multiarray\n_reconstruct\n)R(K\1)cnumpy\ndtype\nU\1O\x85R\x89]tb."s),
      DataError, "expected an array's bytes");
  EXPECT_ERROR(read("cnumpy\nndarray\n)R."s), DataError, "is called in another way");
}

TEST(Pickle, RefusesWhatWouldRunCode) {
  // What pickle.dumps makes of an object whose __reduce__ is (os.system, ("touch x",)).
  const std::string attack =
      "\x80\x02"
      "cposix\nsystem\nX\7\0\0\0touch x\x85R."s;
  EXPECT_ERROR(read(attack), DataError, "names posix.system, which is no part of a tensor");
  EXPECT_ERROR(read("\x80\x04\x8c\x08"
                    "builtins\x8c\x04"
                    "eval\x93."s),
               DataError, "names builtins.eval");
  // Even those that are known cannot be called in any other way.
  EXPECT_ERROR(read("ccollections\nOrderedDict\nK\1\x85R."s), DataError,
               "is called in another way");
  EXPECT_ERROR(read("ctorch\nFloatStorage\n)R."s), DataError, "is called in another way");
  EXPECT_ERROR(read("i"s), DataError, "the opcode 0x69");
}

TEST(Pickle, RefusesDamage) {
  EXPECT_ERROR(read("\x80\x02X\xff\0\0\0abc"s), DataError, "ends within a value");
  EXPECT_ERROR(read(""s), DataError, "ends within a value");
  EXPECT_ERROR(read("."s), DataError, "a value is missing");
  EXPECT_ERROR(read("K\1t."s), DataError, "a mark is missing");
  EXPECT_ERROR(read("h\5."s), DataError, "never kept");
  EXPECT_ERROR(read("K\1K\2s."s), DataError, "a value is missing");
}

// Each of these once ended the program or leaked: values are freed side by side, not one within the
// other.
TEST(Pickle, FreesWhatNestsDeeplyOrHoldsItself) {
  const std::string nested = "\x80\x02)" + std::string(400'000, '\x85') + ".";
  EXPECT_EQ(std::get<PickleList>(*read(nested).root).items.size(), 1u);
  std::string lists = "]";
  for (int i = 0; i < 100'000; ++i) lists += "]a";  // each empty one goes into the first
  EXPECT_EQ(std::get<PickleList>(*read(lists + ".").root).items.size(), 100'000u);
  const Pickle cycle = read("]q\0h\0a."s);
  EXPECT_EQ(std::get<PickleList>(*cycle.root).items.at(0), cycle.root);
  EXPECT_ERROR(read(std::string(10'000'001, ')') + "."), DataError, "more values");
}

}  // namespace
}  // namespace lockstep
