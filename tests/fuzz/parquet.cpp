// Columns of a Parquet file: Arrow reads it, lockstep's reader chooses and converts.
#include "formats/parquet_file.h"

#include <memory>

#include "fuzz.h"

extern "C" lockstep::ParquetFile* lockstep_open_parquet(const char* path);

FUZZ(bytes) {
  using namespace lockstep;
  const std::unique_ptr<ParquetFile> file(lockstep_open_parquet(as_file(bytes).c_str()));
  use(file->rows());
  use(file->metadata("huggingface"));
  std::vector<int> columns;
  for (std::size_t i = 0; i < file->columns().size(); ++i) {
    if (file->columns()[i].kind != ParquetKind::kOther) columns.push_back(static_cast<int>(i));
  }
  std::vector<ParquetCells> cells;
  for (int batch = 0; batch < 4 && file->next(columns, cells); ++batch) use(cells);
}
