# What CONTRIBUTING says of sizes: no source file above 500 lines, each folder of the engine below 2,500 lines of code, which
# is what is neither blank nor a comment of its own line.
#   -D SOURCE=project
cmake_minimum_required(VERSION 3.22)

set(most_lines 500)
set(most_code 2500)
set(wrong "")

# count(FILE LINES CODE): ";" and brackets would part or join CMake's lists.
function(count file out_lines out_code)
  file(READ ${file} text)
  string(REGEX REPLACE "[^\n/ \t]" "x" text "${text}")
  string(REGEX MATCHALL "\n" ends "${text}")
  list(LENGTH ends lines)
  string(REGEX REPLACE "\n[ \t]*//[^\n]*" "\n" text "\n${text}")
  string(REGEX REPLACE "\n[ \t\n]*\n" "\n" text "${text}")
  string(REGEX MATCHALL "\n[^\n]" starts "${text}")
  list(LENGTH starts code)
  set(${out_lines} ${lines} PARENT_SCOPE)
  set(${out_code} ${code} PARENT_SCOPE)
endfunction()

foreach(room include engine engine/cache engine/kernels engine/kernels/simd engine/model engine/run engine/text engine/tokenizer platform convert tools serve
        cluster bindings bench examples tests)
  set(how GLOB_RECURSE)
  if(room MATCHES "^engine")  # folder by folder
    set(how GLOB)
  endif()
  file(${how} files ${SOURCE}/${room}/*.h ${SOURCE}/${room}/*.cpp ${SOURCE}/${room}/*.c)
  set(total 0)
  foreach(file IN LISTS files)
    count(${file} lines code)
    math(EXPR total "${total} + ${code}")
    if(lines GREATER most_lines)
      string(APPEND wrong "\n  ${file}: expected at most ${most_lines} lines, got ${lines}")
    endif()
  endforeach()
  if(files)
    message(STATUS "${room}: ${total} lines of code")
  endif()
  if(room MATCHES "^engine" AND total GREATER most_code)
    string(APPEND wrong "\n  ${room}: expected at most ${most_code} lines of code, got ${total}")
  endif()
endforeach()
if(wrong)
  message(FATAL_ERROR "sizes:${wrong}")
endif()
