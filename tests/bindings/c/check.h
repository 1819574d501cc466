/* What the tests of fovea_host.h share. */
#include "fovea/fovea_host.h"

void check(int good, const char* what, int line);
#define CHECK(condition) check((condition) != 0, #condition, __LINE__)
#define GIVES(code, call) check((call) == (code), #call " to give " #code, __LINE__)

enum { kNew = 12 };
/* The new tokens of a text, of a model without a tokenizer. */
void write_tokens(fovea_host_session* session, uint32_t* tokens);

/* drafts.c. `other`: a model of another vocabulary. */
void test_drafts(const char* model_path, const char* head_path, const char* other_path);

/* saved.c. `other`: another model, or the same with other adapters. path: what `fovea run --session` wrote of the demo model. */
void test_saved(const fovea_host_model* model, const fovea_host_model* other);
void test_session_file(const char* demo_path, const char* path);
