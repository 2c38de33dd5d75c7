// Scripts of POSIX sh that a fetch runs in the hosts' shells; the variables that they use are set
// in front of them. They only read.
#pragma once

namespace lockstep::detail {

// enter PATH: goes to a folder, which may begin with "~/", where there is one.
inline constexpr const char* kEnterFolder = R"sh(
export LC_ALL=C
enter() {
  case $1 in
    '~') set -- "$HOME" ;;
    '~/'*) set -- "$HOME/${1#'~/'}" ;;
  esac
  [ -d "$1" ] || return 1
  cd "$1" || exit 1
}
)sh";

// Prints the zone of the host's local times, then "file BYTES INODE CHANGED ./PATH" of each regular
// file. What is being written aside is left out.
inline constexpr const char* kListRun = R"sh(
echo "zone $(date +%z)"
find . -name .fetch -prune -o -name '*.part' -prune -o -name '*.tmp' -prune -o \
  -type f -exec stat -c 'file %s %i %Y %n' {} + 2>/dev/null
exit 0
)sh";

// Reads "OFFSET NUMBER |PATH|" lines. Prints for each file a line
//   file NUMBER OFFSET BYTES INODE CHANGED SHA256
// and the bytes from OFFSET (0 when the file is shorter) to BYTES, or "gone NUMBER". All of it is
// of one open file: one that is replaced or removed meanwhile is read to its end, one that grows to
// BYTES. Where it shrinks, zeros stand for what went, and the digest tells.
inline constexpr const char* kSendFiles = R"sh(
while IFS=' ' read -r offset number path; do
  path=${path#|}
  path=${path%|}
  if [ -f "$path" ] && {
    set -- $(stat -L -c '%s %i %Y' /proc/self/fd/3)
    [ "$offset" -le "$1" ] || offset=0
    sha=$(head -c "$1" /proc/self/fd/3 | sha256sum)
    echo "file $number $offset $1 $2 $3 ${sha%% *}"
    { tail -c "+$((offset + 1))" /proc/self/fd/3; cat /dev/zero; } 2>/dev/null |
      head -c "$(($1 - offset))"
  } 3<"$path"; then :; else
    echo "gone $number"
  fi
done
)sh";

}  // namespace lockstep::detail
