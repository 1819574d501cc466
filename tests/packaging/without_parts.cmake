# Builds the library without any of its parts (engine/format/parts.h), runs what is left, and holds each refusal against the
# name of what is missing (of tokenizers word pieces alone).
#   -D SOURCE=project  -D SCRATCH=directory  -D GENERATOR=...  -D CXX=compiler  -D CC=compiler  -D FOVEA=the command line
cmake_minimum_required(VERSION 3.22)

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}: expected status 0, got ${result}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})
file(STRINGS ${SOURCE}/engine/format/parts.h parts REGEX "^    [a-z0-9_]+ = [0-9]+,")
list(TRANSFORM parts REPLACE "^ *([a-z0-9_]+).*" "\\1")
file(WRITE ${SCRATCH}/parts.cmake "set(FOVEA_WITHOUT \"${parts}\" CACHE STRING \"\")\n")
run(${CMAKE_COMMAND} -C ${SCRATCH}/parts.cmake -S ${SOURCE} -B ${SCRATCH}/build -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_C_COMPILER=${CC}
    -D CMAKE_BUILD_TYPE=None -D CMAKE_CXX_FLAGS=-O1 -D FOVEA_ISAS=scalar -D FOVEA_OPENMP=OFF -D FOVEA_TOOLS=OFF -D FOVEA_TESTS=OFF
    -D FOVEA_EXAMPLES=OFF)
run(${CMAKE_COMMAND} --build ${SCRATCH}/build)
run(${CC} -std=c11 -Wall -Wextra -I ${SOURCE}/include ${SOURCE}/tests/packaging/without_parts.c ${SCRATCH}/build/libfovea.a -lm -lpthread
    -o ${SCRATCH}/without_parts)

set(golden ${SOURCE}/tests/golden)
set(demo ${SOURCE}/tools/demo/demo.fovea)
run(${FOVEA} convert ${demo} --type q6_k -o ${SCRATCH}/q6_k.fovea)
run(${FOVEA} convert ${golden}/encoders/bert_masked -o ${SCRATCH}/vectors.fovea)
run(${FOVEA} convert ${golden}/encoders/bert_sentence -o ${SCRATCH}/word_piece.fovea)
run(${FOVEA} convert ${demo} --type bf16 -o ${SCRATCH}/bf16.fovea)
run(${FOVEA} convert ${golden}/families/gemma2 -o ${SCRATCH}/variants.fovea)
run(${FOVEA} convert ${golden}/families/mixtral -o ${SCRATCH}/experts.fovea)
run(${SCRATCH}/without_parts ${demo} ${SCRATCH}/q6_k.fovea ${SCRATCH}/vectors.fovea ${SCRATCH}/word_piece.fovea
    ${SCRATCH}/bf16.fovea ${SCRATCH}/variants.fovea ${SCRATCH}/experts.fovea)
foreach(expected
        "tensor type in this build: expected at most 4, got 5" "vectors: left out of this build" "word pieces: left out of this build"
        "weights of bf16: left out of this build" "variants of blocks: left out of this build"
        "bytes of a block record without experts: expected 104, got "
        "attention weights: left out of this build" "speculation: left out of this build" "penalties: left out of this build" "threads: expected at most 1, got 2"
        "answer: {\"do\":\"on\",\"device\":\"dehumidifier\",\"room\":\"garden\"}")
  string(FIND "${output}" "${expected}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "expected \"${expected}\", got\n${output}")
  endif()
endforeach()

# What the build refuses is what `fovea plan` says the file needs.
foreach(file demo q6_k vectors word_piece bf16 variants experts)
  set(path ${SCRATCH}/${file}.fovea)
  if(file STREQUAL "demo")
    set(path ${demo})
  endif()
  run(${FOVEA} plan ${path} --flash 1G --json)
  string(JSON needed_${file} GET "${output}" board needed_parts)
endforeach()
foreach(expected "demo;\\[ *\\]" "q6_k;gguf_types" "vectors;vectors" "word_piece;word_piece" "bf16;bf16" "variants;block_variants" "experts;experts")
  list(GET expected 0 file)
  list(GET expected 1 part)
  if(NOT needed_${file} MATCHES "${part}")
    message(FATAL_ERROR "fovea plan ${file}: expected needed_parts ${part}, got ${needed_${file}}")
  endif()
endforeach()

execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${SCRATCH}/unknown -G ${GENERATOR} -D FOVEA_WITHOUT=nonsense
                        -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_C_COMPILER=${CC} -D FOVEA_TOOLS=OFF -D FOVEA_TESTS=OFF
                RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE output)
if(result EQUAL 0 OR NOT output MATCHES "expected some of .*vectors.* got[ \n]+nonsense")
  message(FATAL_ERROR "FOVEA_WITHOUT=nonsense: expected a refusal, got status ${result}\n${output}")
endif()
