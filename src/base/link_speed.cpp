#include "base/link_speed.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/proc_files.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

// Drivers of virtual machines' network cards, as /sys/class/net/NAME/device/driver names them.
constexpr std::array<std::string_view, 7> kVirtualCards = {
    "virtio_net", "ena", "gve", "hv_netvsc", "vmxnet3", "vif", "xen_netfront"};
constexpr std::array<int64_t, 2> kTunDefaults = {10, 10'000};

bool is_virtual_card(const fs::path& folder) {
  std::error_code none;
  const std::string driver = fs::read_symlink(folder / "device/driver", none).filename();
  return std::find(kVirtualCards.begin(), kVirtualCards.end(), driver) != kVirtualCards.end();
}

// One end of a pair: no device, nothing below it, and linked to another interface. VLANs and the
// like have the interface that they are on as lower_NAME, and its speed.
bool is_veth(const fs::path& folder) {
  std::error_code none;
  if (fs::exists(folder / "device", none)) return false;
  const std::string own = small_file(folder / "ifindex"), other = small_file(folder / "iflink");
  if (own.empty() || other.empty() || own == other) return false;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().filename().string().starts_with("lower_")) return false;
  }
  return true;
}

bool is_unset_tun(const fs::path& folder, int64_t speed) {
  std::error_code none;
  return fs::exists(folder / "tun_flags", none) &&
         std::find(kTunDefaults.begin(), kTunDefaults.end(), speed) != kTunDefaults.end();
}

}  // namespace

int64_t link_speed_mbit(const std::string& interface, const std::string& root) {
  const fs::path folder = fs::path(root + "/sys/class/net") / interface;
  const int64_t speed = std::strtoll(small_file(folder / "speed").c_str(), nullptr, 10);
  if (speed <= 0 || is_virtual_card(folder) || is_veth(folder) || is_unset_tun(folder, speed)) {
    return 0;
  }
  return speed;
}

}  // namespace lockstep
