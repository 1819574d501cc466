// A conversation in C: each line of standard input is said to a model, which answers by its own chat template.
//
//     fovea_example_chat MODEL [SCHEMA.json]      # a Fovea file, a GGUF file or a folder; answers that a JSON schema allows
#include <stdio.h>
#include <string.h>

#include "fovea/fovea_host.h"

enum { kMostBytes = 1 << 16 };

static int failed(int code) {
    if (code) fprintf(stderr, "%s\n", fovea_host_error());
    return code;
}

/// Appends `text` to a JSON string.
static void add_escaped(char* json, const char* text) {
    char* end = json + strlen(json);
    for (; *text; ++text)
        if (*text == '"' || *text == '\\' || (unsigned char)*text < 0x20)
            end += sprintf(end, "\\u%04x", (unsigned char)*text);
        else
            *end++ = *text;
    *end = 0;
}

struct answer {
    char text[kMostBytes];
    size_t n;
};

static int print(void* context, const char* text) {
    struct answer* answer = context;
    const size_t n = strlen(text);
    if (answer->n + n >= sizeof answer->text) return 1;  // ends the answer
    memcpy(answer->text + answer->n, text, n + 1), answer->n += n;
    fputs(text, stdout);
    return fflush(stdout);
}

static char* read_text(const char* path) {
    static char text[kMostBytes];
    FILE* file = fopen(path, "rb");
    if (!file) return NULL;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

int main(int argc, char** argv) {
    if (argc < 2) return fprintf(stderr, "usage: %s MODEL [SCHEMA.json]\n", argv[0]), 2;
    fovea_host_model* model;
    fovea_host_session* session;
    fovea_host_form* form = NULL;
    if (failed(fovea_host_open(argv[1], NULL, &model)) || failed(fovea_host_start(model, NULL, &session))) return 1;
    if (argc > 2) {
        const char* schema = read_text(argv[2]);
        if (!schema) return fprintf(stderr, "%s: cannot be read\n", argv[2]), 1;
        if (failed(fovea_host_compile_form(model, FOVEA_HOST_JSON_SCHEMA, schema, &form))) return 1;
    }
    static char line[1 << 10], messages[kMostBytes * 8] = "[";
    static struct answer answer;
    const fovea_generate_options options = {.struct_size = sizeof options, .n_new = 256};
    while (fgets(line, sizeof line, stdin) && strlen(messages) < kMostBytes) {
        line[strcspn(line, "\n")] = 0;
        strcat(messages, messages[1] ? ", {\"role\": \"user\", \"content\": \"" : "{\"role\": \"user\", \"content\": \"");
        add_escaped(messages, line);
        strcat(messages, "\"}]");
        answer.n = 0;
        if (failed(fovea_host_chat(session, messages, NULL, &options, form, print, &answer))) return 1;
        putchar('\n');
        messages[strlen(messages) - 1] = 0;  // without the list's end: the answer joins it
        strcat(messages, ", {\"role\": \"assistant\", \"content\": \"");
        add_escaped(messages, answer.text);
        strcat(messages, "\"}");
    }
    return fovea_host_free_form(form), fovea_host_end(session), fovea_host_close(model), 0;
}
