#include "host/base/languages.h"

#include <algorithm>

#include "host/base/ascii.h"
#include "host/base/words.h"

namespace fovea {
namespace {

// Each as: code, three letters and script as NLLB's names have them, English name, other codes and names.
constexpr std::string_view kLanguages =
    "af afr Latn afrikaans;am amh Ethi amharic;ar arb Arab arabic ara;as asm Beng assamese;ast ast Latn asturian;"
    "az azj Latn azerbaijani aze;ba bak Cyrl bashkir;be bel Cyrl belarusian;bg bul Cyrl bulgarian;bn ben Beng bengali;"
    "bo bod Tibt tibetan tib;br bre Latn breton;bs bos Latn bosnian;ca cat Latn catalan valencian;ceb ceb Latn cebuano;"
    "cs ces Latn czech cze;cy cym Latn welsh wel;da dan Latn danish;de deu Latn german ger;el ell Grek greek gre;"
    "en eng Latn english;eo epo Latn esperanto;es spa Latn spanish castilian;et est Latn estonian;eu eus Latn basque "
    "baq;"
    "fa pes Arab persian fas per farsi;ff fuv Latn fulah ful;fi fin Latn finnish;fo fao Latn faroese;"
    "fr fra Latn french fre;fy fry Latn frisian;ga gle Latn irish;gd gla Latn gaelic scottish-gaelic;gl glg Latn "
    "galician;"
    "gu guj Gujr gujarati;ha hau Latn hausa;haw haw Latn hawaiian;he heb Hebr hebrew iw;hi hin Deva hindi;"
    "hr hrv Latn croatian;ht hat Latn haitian-creole haitian;hu hun Latn hungarian;hy hye Armn armenian arm;"
    "id ind Latn indonesian;ig ibo Latn igbo;ilo ilo Latn iloko ilocano;is isl Latn icelandic ice;it ita Latn italian;"
    "ja jpn Jpan japanese;jw jav Latn javanese jv;ka kat Geor georgian geo;kk kaz Cyrl kazakh;km khm Khmr khmer "
    "central-khmer;"
    "kn kan Knda kannada;ko kor Hang korean;ku kmr Latn kurdish kur;ky kir Cyrl kyrgyz;la lat Latn latin;"
    "lb ltz Latn luxembourgish letzeburgesch;lg lug Latn ganda luganda;ln lin Latn lingala;lo lao Laoo lao;"
    "lt lit Latn lithuanian;lv lvs Latn latvian lav;mg plt Latn malagasy mlg;mi mri Latn maori mao;"
    "mk mkd Cyrl macedonian mac;ml mal Mlym malayalam;mn khk Cyrl mongolian mon;mr mar Deva marathi;"
    "ms zsm Latn malay msa may;mt mlt Latn maltese;my mya Mymr myanmar bur burmese;ne npi Deva nepali nep;"
    "nl nld Latn dutch dut flemish;nn nno Latn nynorsk norwegian-nynorsk;no nob Latn norwegian nor nb bokmal;"
    "ns nso Latn northern-sotho;oc oci Latn occitan;or ory Orya odia ori oriya;pa pan Guru punjabi panjabi;"
    "pl pol Latn polish;ps pbt Arab pashto pus pushto;pt por Latn portuguese;ro ron Latn romanian rum moldovan "
    "moldavian;"
    "ru rus Cyrl russian;rw kin Latn kinyarwanda;sa san Deva sanskrit;sd snd Arab sindhi;si sin Sinh sinhala sinhalese;"
    "sk slk Latn slovak slo;sl slv Latn slovenian slovene;sn sna Latn shona;so som Latn somali;sq als Latn albanian "
    "sqi alb;"
    "sr srp Cyrl serbian;ss ssw Latn swati;st sot Latn sotho southern-sotho;su sun Latn sundanese;sv swe Latn swedish;"
    "sw swh Latn swahili swa;ta tam Taml tamil;te tel Telu telugu;tg tgk Cyrl tajik;th tha Thai thai;"
    "ti tir Ethi tigrinya;tk tuk Latn turkmen;tl tgl Latn tagalog fil filipino;tn tsn Latn tswana;tr tur Latn turkish;"
    "tt tat Cyrl tatar;ug uig Arab uyghur;uk ukr Cyrl ukrainian;ur urd Arab urdu;uz uzn Latn uzbek uzb;"
    "vi vie Latn vietnamese;wo wol Latn wolof;xh xho Latn xhosa;yi ydd Hebr yiddish yid;yo yor Latn yoruba;"
    "yue yue Hant cantonese;zh zho Hans chinese chi cmn mandarin;zu zul Latn zulu;";

/// What stands before `mark`, which goes with it.
std::string_view cut_at(std::string_view& text, char mark) {
    const std::size_t end = std::min(text.find(mark), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return part;
}

/// The row with one of whose words this is.
std::optional<KnownLanguage> find_row(std::string_view word) {
    for (std::string_view rows = kLanguages; !rows.empty();) {
        const std::string_view row = cut_at(rows, ';');
        for (std::string_view rest = row; !rest.empty();) {
            const std::string_view one = cut_at(rest, ' ');
            if (one != word || (one[0] >= 'A' && one[0] <= 'Z')) continue;
            std::string_view fields = row;
            KnownLanguage found{cut_at(fields, ' '), cut_at(fields, ' '), {}, {}};
            found.script = cut_at(fields, ' ');
            return found;
        }
    }
    return {};
}

}  // namespace

std::optional<KnownLanguage> find_known_language(std::string_view written) {
    std::string name(trimmed(written));
    for (char& c : name) c = c == '_' || c == ' ' ? '-' : to_lower(c);
    if (std::optional<KnownLanguage> whole = find_row(name)) return whole;
    std::string_view rest = name;
    std::optional<KnownLanguage> found = find_row(cut_at(rest, '-'));
    if (!found) return {};
    for (std::string_view tag = cut_at(rest, '-'); !tag.empty(); tag = cut_at(rest, '-')) {
        std::string& field = tag.size() == 4 ? found->script : found->region;
        field.assign(tag);
        std::transform(field.begin(), tag.size() == 4 ? field.begin() + 1 : field.end(), field.begin(), to_upper);
    }
    const std::string& region = found->region;
    if (found->code == "zh" && (region == "TW" || region == "HK" || region == "MO")) found->script = "Hant";
    return found;
}

}  // namespace fovea
