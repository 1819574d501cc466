// What is said in a recording, in C: segments with their times as they are decided, then the words.
//
//     fovea_example_transcribe MODEL SOUND      # a Whisper as a Fovea file or a folder; a WAV, FLAC, Ogg or MP3 file
#include <stdio.h>

#include "fovea/fovea_host.h"

static int failed(int code) {
    if (code) fprintf(stderr, "%s\n", fovea_host_error());
    return code;
}

static int print(void* context, const fovea_host_span* segment) {
    (void)context;
    printf("[%7.2f - %7.2f]%s\n", segment->start, segment->end, segment->text);
    return fflush(stdout);
}

int main(int argc, char** argv) {
    if (argc < 3) return fprintf(stderr, "usage: %s MODEL SOUND\n", argv[0]), 2;
    fovea_host_model* model;
    fovea_host_transcriber* transcriber;
    const fovea_host_speech_options options = {.struct_size = sizeof options, .words = 1};
    if (failed(fovea_host_open(argv[1], NULL, &model))) return 1;
    if (failed(fovea_host_make_transcriber(model, &options, &transcriber))) return 1;

    float* samples;
    size_t n_samples;
    if (failed(fovea_host_read_sound(argv[2], fovea_host_sample_rate(model), &samples, &n_samples))) return 1;
    fovea_host_transcript* said;
    if (failed(fovea_host_transcribe(transcriber, samples, n_samples, print, NULL, &said))) return 1;
    printf("%s, %zu segments, %zu words\n", said->language[0] ? said->language : "?", said->n_segments, said->n_words);
    for (size_t i = 0; i < said->n_words; ++i)
        printf("%7.2f %5.2f %s\n", said->words[i].start, said->words[i].probability, said->words[i].text);

    fovea_host_free(said), fovea_host_free(samples);
    fovea_host_free_transcriber(transcriber);
    fovea_host_close(model);
    return 0;
}
