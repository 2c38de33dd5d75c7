// A library with the functions of the CUDA driver API that lockstep uses, for machines without a
// GPU. It pretends that there is one GPU, a T4.
#include <cstring>

namespace {
constexpr int kSuccess = 0, kNotInitialized = 3, kInvalidDevice = 101, kInvalidValue = 1;
bool begun = false;
}  // namespace

extern "C" {

int cuInit(unsigned) {
  begun = true;
  return kSuccess;
}

int cuDeviceGet(int* device, int index) {
  if (!begun) return kNotInitialized;
  if (index != 0) return kInvalidDevice;
  *device = 40;  // the driver's own ordinal
  return kSuccess;
}

int cuDeviceGetName(char* name, int length, int device) {
  if (device != 40) return kInvalidDevice;
  std::strncpy(name, "Tesla T4", static_cast<std::size_t>(length));
  return kSuccess;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (device != 40) return kInvalidDevice;
  if (attribute != 75 && attribute != 76) return kInvalidValue;
  *value = attribute == 75 ? 7 : 5;  // compute capability 7.5
  return kSuccess;
}
}
