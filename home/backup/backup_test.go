package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// house is a home with something in every corner.
func house(t *testing.T, said string) *config.Home {
	t.Helper()
	home, err := config.OpenHomeAt(filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	fill(t, home, said)
	return home
}

// fill writes every part of a home; texts tell one filling from another.
func fill(t *testing.T, home *config.Home, said string) {
	t.Helper()
	store, err := sqlite.Open(home.Database())
	if err != nil {
		t.Fatal(err)
	}
	if err := journal.Do(t.Context(), store, func(tx journal.Tx) error {
		if err := tx.AppendEvent(&busv1.Event{Topic: "a.b", Source: "test", Payload: []byte(`"` + said + `"`),
			CreatedAtUs: 1}); err != nil {
			return err
		}
		_, err := tx.KVPut("scheduler", "schedule/r1", []byte(said))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"config.yaml": "# " + said, "secrets.env": "TOKEN=" + said, "extensions/shop/manifest.yaml": said,
		"extensions/shop/shop": said, "extensions/.staging-1/new/shop": said,
		"data/shop/deep/file": said, "logs/kernel.log": said, "control.token": said,
	} {
		path := filepath.Join(home.Path(), name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o700)); err != nil { //nolint:gosec // one of them is a program
			t.Fatal(err)
		}
	}
}

// says is what the store of a home holds.
func says(t *testing.T, home *config.Home) string {
	t.Helper()
	store, err := sqlite.Open(home.Database())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	var v journal.KV
	if err := store.View(t.Context(), func(r journal.Reader) (err error) {
		v, err = r.KVGet("scheduler", "schedule/r1")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return string(v.Value)
}

func content(t *testing.T, home *config.Home, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(home.Path(), name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

func source(home *config.Home) Source {
	return Source{Home: home, Version: "1.2.3", Copy: func(ctx context.Context, path string) error {
		return sqlite.Copy(ctx, home.Database(), path)
	}}
}

func backUp(t *testing.T, home *config.Home) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "b"+Extension)
	if _, err := Create(t.Context(), source(home), file); err != nil {
		t.Fatal(err)
	}
	return file
}

// members are the files of an archive by name.
func members(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = string(b)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestWhatIsInABackup(t *testing.T) {
	t.Parallel()
	home := house(t, "before")
	if err := os.Symlink("/etc/passwd", filepath.Join(home.Path(), "data", "shop", "link")); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, secrets := range []bool{false, true} {
		s := source(home)
		s.Secrets = secrets
		file := filepath.Join(dir, "b"+map[bool]string{true: "-with"}[secrets]+Extension)
		info, err := Create(t.Context(), s, file)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"SHA256SUMS", "backup.json", "config.yaml", "data/", "data/shop/", "data/shop/deep/", "data/shop/deep/file",
			"extensions/", "extensions/shop/", "extensions/shop/manifest.yaml", "extensions/shop/shop", "switchboard.db",
		}
		if secrets {
			want = append(want, "secrets.env")
			slices.Sort(want)
		}
		if got := slices.Sorted(maps.Keys(members(t, file))); !slices.Equal(got, want) {
			t.Errorf("in it are\n%q, want\n%q", got, want)
		}
		if !slices.Equal(info.LeftOut, []string{"data/shop/link"}) {
			t.Errorf("left out are %q", info.LeftOut)
		}
		verified, err := Verify(t.Context(), file, home.Backups())
		if err != nil {
			t.Fatal(err)
		}
		if verified.Events != 1 || verified.Keys["scheduler/schedule"] != 1 || verified.MadeBy != "1.2.3" ||
			verified.Secrets != secrets ||
			verified.FirstEvent == nil || verified.Bytes != info.Bytes || !verified.CreatedAt.Equal(info.CreatedAt) {
			t.Errorf("it says of itself %+v", verified)
		}
		if stat, err := os.Stat(file); err != nil || stat.Mode().Perm() != 0o600 {
			t.Errorf("its mode is %v (%v)", stat.Mode(), err)
		}
		if _, err := Create(t.Context(), s, file); err == nil || !strings.Contains(err.Error(), "file exists") {
			t.Errorf("creating it again: %v", err)
		}
	}
	if left := names(t, dir); len(left) != 2 {
		t.Errorf("beside the backups there are %q", left)
	}
	if left := names(t, home.Backups()); len(left) != 0 {
		t.Errorf("verifying has left %q", left)
	}
}

// TestOddNames has files whose names would break the list of sums, or are hard
// for tar. An extension that writes into data/ must not be able to spoil the backups.
func TestOddNames(t *testing.T) {
	t.Parallel()
	home := house(t, "before")
	odd := []string{"two\nlines", "\n", "returns\r", `back\slash\n`, " spaces  ", "not\xffutf-8",
		strings.Repeat("long", 60), "=", "ü", "-rf", `\`, ".unfinished-file", ".a"}
	for _, name := range odd {
		if err := os.WriteFile(filepath.Join(home.Path(), "data", "shop", name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := backUp(t, home)
	if _, err := Verify(t.Context(), file, home.Backups()); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), home, file, false); err != nil {
		t.Fatal(err)
	}
	for _, name := range odd {
		if got := content(t, home, "data/shop/"+name); got != name {
			t.Errorf("%q has %q", name, got)
		}
	}
}

func TestABackupThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	home, dir := house(t, "before"), t.TempDir()
	cancelled, cancel := context.WithCancel(t.Context())
	for name, s := range map[string]Source{
		"no room": {Home: home, Copy: func(context.Context, string) error { return errors.New("no room") }},
		"a broken copy": {Home: home, Copy: func(_ context.Context, path string) error {
			return os.WriteFile(path, []byte("broken"), 0o600)
		}},
		"was cancelled": {Home: home, Copy: func(ctx context.Context, path string) error {
			cancel()
			return sqlite.Copy(ctx, home.Database(), path)
		}},
		"an empty store": {Home: home, Copy: func(_ context.Context, path string) error {
			return os.WriteFile(path, nil, 0o600)
		}},
	} {
		if _, err := Create(cancelled, s, filepath.Join(dir, "b"+Extension)); err == nil {
			t.Errorf("%s: it was made", name)
		}
	}
	if left := names(t, dir); len(left) != 0 {
		t.Errorf("it has left %q", left)
	}
}

func TestRestore(t *testing.T) {
	t.Parallel()
	home := house(t, "before")
	file := backUp(t, home)
	fill(t, home, "after")
	if err := os.WriteFile(filepath.Join(home.Path(), "data", "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Restore(t.Context(), home, file, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := says(t, home); got != "before" {
		t.Errorf("the store says %q", got)
	}
	for name, want := range map[string]string{
		"config.yaml": "# before", "secrets.env": "TOKEN=after", "extensions/shop/shop": "before",
		"data/shop/deep/file": "before", "logs/kernel.log": "after",
	} {
		if got := content(t, home, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if info, err := os.Stat(filepath.Join(home.Extensions(), "shop", "shop")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("a program has mode %v (%v)", info.Mode(), err)
	}
	if exists(filepath.Join(home.Path(), "data", "new")) {
		t.Error("a file that the backup does not have is still there")
	}
	if got := names(t, r.Before); !slices.Equal(got, []string{"config.yaml", "data", "extensions", "switchboard.db"}) {
		t.Errorf("kept are %q", got)
	}
	kept, err := config.OpenHomeAt(r.Before)
	if err != nil {
		t.Fatal(err)
	}
	if got := says(t, kept); got != "after" {
		t.Errorf("the store that is kept says %q", got)
	}
}

func TestRestoreTheStoreOnly(t *testing.T) {
	t.Parallel()
	home := house(t, "before")
	file := backUp(t, home)
	fill(t, home, "after")
	if _, err := Restore(t.Context(), home, file, true); err != nil {
		t.Fatal(err)
	}
	if got, config := says(t, home), content(t, home, "config.yaml"); got != "before" || config != "# after" {
		t.Errorf("the store says %q, the configuration %q", got, config)
	}
}

// TestRestoreAStoreAlone restores what is kept before a migration, on a home
// whose store is lost and whose log of changes is not.
func TestRestoreAStoreAlone(t *testing.T) {
	t.Parallel()
	home := house(t, "before")
	alone := sqlite.MigrationBackup(home.Database(), 1)
	if err := sqlite.Copy(t.Context(), home.Database(), alone); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(home.Database()+"-wal", make([]byte, 9000), 0o600),
		os.Remove(home.Database())); err != nil {
		t.Fatal(err)
	}
	r, err := Restore(t.Context(), home, List(home)[0].File, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := says(t, home); got != "before" {
		t.Errorf("the store says %q", got)
	}
	if got := names(t, r.Before); !slices.Equal(got, []string{"switchboard.db-wal"}) {
		t.Errorf("kept are %q", got)
	}
}

// TestUnusable damages a backup in every way, and restores it: nothing changes.
func TestUnusable(t *testing.T) {
	t.Parallel()
	home := house(t, "before")
	good, err := os.ReadFile(backUp(t, home))
	if err != nil {
		t.Fatal(err)
	}
	change := func(edit func(name, content string) (string, string)) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		w := tar.NewWriter(z)
		file := filepath.Join(t.TempDir(), "b")
		if err := os.WriteFile(file, good, 0o600); err != nil {
			t.Fatal(err)
		}
		all := members(t, file)
		for _, name := range append(slices.DeleteFunc(slices.Sorted(maps.Keys(all)),
			func(s string) bool { return s == sumsName }), sumsName) {
			name, content := edit(name, all[name])
			if name != "" && !strings.HasSuffix(name, "/") {
				if err := writeMember(w, name, []byte(content), home0(), io.Discard); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := errors.Join(w.Close(), z.Close()); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	only := func(which string, edit func(string) (string, string)) []byte {
		return change(func(name, content string) (string, string) {
			if name == which {
				return edit(content)
			}
			return name, content
		})
	}
	for name, bad := range map[string][]byte{
		"empty":         {},
		"text":          []byte("no backup"),
		"half":          good[:len(good)/2],
		"all but one":   good[:len(good)-1],
		"one bit":       func() []byte { b := slices.Clone(good); b[len(b)/2] ^= 4; return b }(),
		"no store":      only(storeName, func(string) (string, string) { return "", "" }),
		"no sums":       only(sumsName, func(string) (string, string) { return "", "" }),
		"another text":  only(partConfig, func(string) (string, string) { return partConfig, "# evil" }),
		"leads out":     only(partConfig, func(c string) (string, string) { return "../config.yaml", c }),
		"absolute":      only(partConfig, func(c string) (string, string) { return "/tmp/config.yaml", c }),
		"something new": only(partConfig, func(c string) (string, string) { return "control.token", c }),
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			home := house(t, "after")
			file := filepath.Join(t.TempDir(), "bad"+Extension)
			if err := os.WriteFile(file, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Verify(t.Context(), file, home.Backups()); !errors.Is(err, ErrUnusable) {
				t.Errorf("verifying: %v, want ErrUnusable", err)
			}
			before := names(t, home.Path())
			if _, err := Restore(t.Context(), home, file, false); !errors.Is(err, ErrUnusable) ||
				!strings.Contains(err.Error(), "nothing was restored") {
				t.Errorf("restoring: %v, want ErrUnusable", err)
			}
			if after := names(t, home.Path()); !slices.Equal(before, after) {
				t.Errorf("the home has %q, then %q", before, after)
			}
			if got := says(t, home); got != "after" {
				t.Errorf("the store says %q", got)
			}
		})
	}
}
