// Labels of a text in C, or of two: a sentiment, a topic, whether one follows from the other, how well a passage answers.
//
//     fovea_example_classify MODEL TEXT [SECOND]      # a Fovea file or a folder of an encoder with a head for classes
#include <stdio.h>
#include <stdlib.h>

#include "fovea/fovea_host.h"

static int failed(int code) {
    if (code) fprintf(stderr, "%s\n", fovea_host_error());
    return code;
}

int main(int argc, char** argv) {
    if (argc < 3) return fprintf(stderr, "usage: %s MODEL TEXT [SECOND]\n", argv[0]), 2;
    fovea_host_model* model;
    if (failed(fovea_host_open(argv[1], NULL, &model))) return 1;
    const size_t n_labels = fovea_host_width(model);
    float* scores = calloc(n_labels, sizeof *scores);
    size_t n_whole = 0;
    const fovea_host_text_options options = {.struct_size = sizeof options, .n_whole_tokens = &n_whole};
    const char* const texts[] = {argv[2]};
    const char* const pairs[] = {argc > 3 ? argv[3] : NULL};
    if (!scores || failed(fovea_host_classify(model, texts, argc > 3 ? pairs : NULL, 1, &options, scores))) return 1;
    for (size_t i = 0; i < n_labels; ++i) printf("%.4f  %s\n", scores[i], fovea_host_label(model, i));

    free(scores);
    fovea_host_close(model);
    return 0;
}
