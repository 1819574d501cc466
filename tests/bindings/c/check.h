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
