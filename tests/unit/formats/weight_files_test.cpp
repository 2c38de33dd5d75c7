#include "formats/weight_files.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/python.h"

namespace lockstep {
namespace {

// A file of torch.save is a zip archive with a pickle in it.
TEST(WeightFiles, RefuseAPickleThatNestsDeeply) {
  TemporaryFolder folder;
  const fs::path file = folder.path() / "pytorch_model.bin";
  const PythonResult made = run_python(
      fmt::format("-c \"import zipfile; zipfile.ZipFile('{}', 'w').writestr('archive/data.pkl', "
                  "b'\\x80\\x02)' + b'\\x85' * 400000 + b'.')\"",
                  file.string()));
  ASSERT_EQ(made.status, 0) << made.errors;
  EXPECT_ERROR(WeightFiles{file}, DataError, "holds no dictionary of tensors");
}

}  // namespace
}  // namespace lockstep
