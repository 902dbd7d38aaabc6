package words

import (
	"errors"
	"testing"
	"testing/fstest"
)

// spanish is a language in one file.
const spanish = `msgid ""
msgstr ""
"Language: es\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

msgid "there is no task %q: %w"
msgstr "no hay tarea %q: %w"

msgid "there is no task %q"
msgstr "no hay tarea %q"

msgid "the disk is full"
msgstr "el disco está lleno"

msgid "%d%% of %s is used"
msgstr "de %[2]s se usa el %[1]d%%"

msgid "%d file is left (%v)"
msgid_plural "%d files are left (%v)"
msgstr[0] "queda %d archivo (%v)"
msgstr[1] "quedan %d archivos (%v)"

msgid "Stopped."
msgstr "Parado."

msgid "the long limit of today for %s"
msgstr "el límite de hoy para %s"

msgid "the long limit of today for all"
msgstr "el límite de hoy para todos"

msgid "%v is reached: %v"
msgstr "se alcanzó %v: %v"
`

// TestAFurtherLanguageIsOneFile adds a language for the time of the test: all that
// translates finds it.
func TestAFurtherLanguageIsOneFile(t *testing.T) { //nolint:paralleltest // it changes the languages
	before := catalogs
	t.Cleanup(func() { catalogs = before })
	catalogs = load(fstest.MapFS{"es.po": {Data: []byte(spanish)}})

	if got := Languages(); len(got) != 1 || got[0] != "es" {
		t.Errorf("the languages are %q", got)
	}
	if got := Say("es-MX", "Stopped."); got != "Parado." {
		t.Errorf("said %q", got)
	}
	if got := Count("es", "%d file is left (%v)", "%d files are left (%v)", 3, 3, "a"); got != "quedan 3 archivos (a)" {
		t.Errorf("counted %q", got)
	}
	full := errors.New("the disk is full")
	for english, want := range map[string]string{
		Errorf("there is no task %q: %w", "a: b", full).Error():        `no hay tarea "a: b": el disco está lleno`,
		Errorf("there is no task %q", "the disk is full").Error():      `no hay tarea "the disk is full"`,
		Sprintf("%d%% of %s is used", 80, "the disk is full"):          "de the disk is full se usa el 80%",
		Sprintf("%d files are left (%v)", 2, full):                     "quedan 2 archivos (el disco está lleno)",
		Sprintf("%d file is left (%v)", 1, "none"):                     "queda 1 archivo (none)",
		"the long limit of today for all is reached: the disk is full": "se alcanzó el límite de hoy para todos: el disco está lleno",
		"the disk is full again":                                       "the disk is full again",
		"":                                                             "",
	} {
		if got := Translate("es", english); got != want {
			t.Errorf("%q is %q, want %q", english, got, want)
		}
		if got := Translate("de", english); got != english {
			t.Errorf("in a language without a file, %q is %q", english, got)
		}
	}
}
