#include "formats/zip_file.h"

#include <cstring>
#include <fstream>

#include "base/error.h"

namespace lockstep {

namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr uint64_t kEndBytes = 22, kLocatorBytes = 20, kEnd64Bytes = 56, kCentralBytes = 46,
                   kLocalBytes = 30, kLongestComment = 65535;
constexpr uint32_t kIn64 = 0xffffffff;  // says that the value is in the zip64 field

template <class T>
T number(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

bool is_zip_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  uint32_t first = 0;
  file.read(reinterpret_cast<char*>(&first), sizeof first);
  return file && first == kLocalHeader;
}

void ZipFile::refuse(const std::string& why) const {
  throw DataError("{}: not a whole zip archive: {}", path_.string(), why);
}

std::span<const std::byte> ZipFile::at(uint64_t begin, uint64_t bytes, const char* what) const {
  const uint64_t size = file_.bytes().size();
  if (begin > size || bytes > size - begin) {
    refuse(fmt::format("{} at byte {} has {} bytes, the file {}", what, begin, bytes, size));
  }
  return file_.bytes().subspan(begin, bytes);
}

ZipFile::ZipFile(const fs::path& path) : path_(path), file_(path) {
  const uint64_t size = file_.bytes().size();
  if (size < kEndBytes) refuse("it is shorter than the shortest");
  const uint64_t first = size - std::min(size, kEndBytes + kLongestComment);
  uint64_t end = size - kEndBytes;
  while (number<uint32_t>(at(end, kEndBytes, "its end"), 0) != kEnd) {
    if (end == first) refuse("its end is missing; was the file cut off?");
    --end;
  }
  uint64_t count = number<uint16_t>(file_.bytes(), end + 10);
  uint64_t begin = number<uint32_t>(file_.bytes(), end + 16);
  if (end >= kLocatorBytes &&
      number<uint32_t>(file_.bytes(), end - kLocatorBytes) == kEnd64Locator) {
    const auto end64 = number<uint64_t>(file_.bytes(), end - kLocatorBytes + 8);
    const auto record = at(end64, kEnd64Bytes, "its zip64 end");
    if (number<uint32_t>(record, 0) != kEnd64) refuse("its zip64 end is not where it says");
    count = number<uint64_t>(record, 32);
    begin = number<uint64_t>(record, 48);
  }
  read_entries(begin, count);
}

void ZipFile::read_entries(uint64_t begin, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const auto header = at(begin, kCentralBytes, "a directory entry");
    if (number<uint32_t>(header, 0) != kCentralHeader) refuse("its directory is damaged");
    const auto method = number<uint16_t>(header, 10);
    uint64_t packed = number<uint32_t>(header, 20), bytes = number<uint32_t>(header, 24);
    uint64_t local = number<uint32_t>(header, 42);
    const uint64_t name_bytes = number<uint16_t>(header, 28);
    const uint64_t extra_bytes = number<uint16_t>(header, 30);
    const auto name_part = at(begin + kCentralBytes, name_bytes, "a name");
    const std::string name(reinterpret_cast<const char*>(name_part.data()), name_bytes);
    auto extra = at(begin + kCentralBytes + name_bytes, extra_bytes, "an extra field");
    while (extra.size() >= 4) {
      const uint64_t field = number<uint16_t>(extra, 2);
      if (field > extra.size() - 4) refuse(name + " has a damaged extra field");
      if (number<uint16_t>(extra, 0) == 1) {  // zip64: the values that did not fit, in this order
        std::size_t next = 4;
        for (uint64_t* value : {&bytes, &packed, &local}) {
          if (*value != kIn64) continue;
          if (next + 8 > 4 + field) refuse(name + " has a damaged zip64 field");
          *value = number<uint64_t>(extra, next);
          next += 8;
        }
      }
      extra = extra.subspan(4 + field);
    }
    if (method != 0 || packed != bytes) {
      throw DataError("{}: the entry {} is compressed (method {}); expected stored ones",
                      path_.string(), name, method);
    }
    const auto own = at(local, kLocalBytes, name.c_str());
    if (number<uint32_t>(own, 0) != kLocalHeader) refuse(name + " is not where it says");
    const uint64_t data =
        local + kLocalBytes + number<uint16_t>(own, 26) + number<uint16_t>(own, 28);
    entries_[name] = at(data, bytes, name.c_str());
    begin += kCentralBytes + name_bytes + extra_bytes + number<uint16_t>(header, 32);
  }
}

}  // namespace lockstep
