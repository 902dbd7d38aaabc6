package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func TestHomePath(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		env        func(string) (string, bool)
		goos, want string
	}{
		"named":        {env(HomeEnv, "/srv/sb", xdgEnv, "/x", "HOME", "/h"), "linux", "/srv/sb"},
		"xdg":          {env(HomeEnv, "", xdgEnv, "/x", "HOME", "/h"), "linux", "/x/switchboard"},
		"relative xdg": {env(xdgEnv, "x", "HOME", "/h"), "linux", "/h/.local/share/switchboard"},
		"linux":        {env("HOME", "/h"), "linux", "/h/.local/share/switchboard"},
		"darwin":       {env("HOME", "/h"), "darwin", "/h/Library/Application Support/switchboard"},
		"nothing":      {env(), "linux", ""},
	} {
		got, err := homePath(tc.env, tc.goos)
		if got != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func TestOpenHome(t *testing.T) {
	t.Parallel()
	base, err := os.MkdirTemp("/tmp", "sb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	path := filepath.Join(base, "a", "home")
	h, err := OpenHome(env(HomeEnv, path))
	if err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{h.Path(), h.Extensions(), h.RuntimeDir()} {
		if m := mode(t, dir); m != os.ModeDir|0o700 {
			t.Errorf("%s has mode %v", dir, m)
		}
	}
	if h.Path() != real || h.RuntimeDir() != real+"/run" || h.Config() != real+"/config.yaml" ||
		h.Secrets() != real+"/secrets.env" || h.Database() != real+"/switchboard.db" {
		t.Errorf("paths: %+v", h)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenHomeAt(path); err != nil || mode(t, path).Perm() != 0o700 {
		t.Errorf("an open home was not closed: %v, %v", mode(t, path), err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if l, err := OpenHomeAt(link); err != nil || l.RuntimeDir() != h.RuntimeDir() {
		t.Errorf("by another name: %+v, %v", l, err)
	}
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenHomeAt(file); err == nil || !strings.Contains(err.Error(),
		file+" is not a directory; set SWITCHBOARD_HOME") {
		t.Errorf("a file as the home: %v", err)
	}
}

func TestFindHomeChangesNothing(t *testing.T) {
	t.Parallel()
	base, err := os.MkdirTemp("/tmp", "sb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	for _, path := range []string{filepath.Join(base, "a", "home"), filepath.Join(base, strings.Repeat("long", 25))} {
		found, err := FindHome(env(HomeEnv, path))
		if err != nil || found.Exists() || found.Path() != path {
			t.Fatalf("a home that is not there: %+v, %v", found, err)
		}
		if left, err := os.ReadDir(base); err != nil || slices.ContainsFunc(left,
			func(e os.DirEntry) bool { return filepath.Join(base, e.Name()) == path }) || mode(t, base).Perm() != 0o700 {
			t.Errorf("it was made: %v, %v", left, err)
		}
		if _, err := os.Stat(found.RuntimeDir()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("its runtime directory was made: %v", err)
		}
		opened, err := OpenHomeAt(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(opened.RuntimeDir()) })
		if found, err = FindHome(env(HomeEnv, path)); err != nil || !found.Exists() || *found != *opened {
			t.Errorf("a home that is there: %+v instead of %+v, %v", found, opened, err)
		}
	}
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := FindHome(env(HomeEnv, file)); err == nil ||
		!strings.Contains(err.Error(), file+" is not a directory; set SWITCHBOARD_HOME") {
		t.Errorf("a file as the home: %v", err)
	}
}

func TestRuntimeDir(t *testing.T) {
	t.Parallel()
	temp, err := os.MkdirTemp("/tmp", "sb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temp) })
	long := "/" + strings.Repeat("x", 80)
	first, err := runtimeDir(long+"/a", temp)
	if err != nil {
		t.Fatal(err)
	}
	again, err := runtimeDir(long+"/a", temp)
	if err != nil || again != first {
		t.Errorf("not the same for the same home: %s, %s, %v", first, again, err)
	}
	other, err := runtimeDir(long+"/b", temp)
	if err != nil || other == first {
		t.Errorf("the same for another home: %s, %v", other, err)
	}
	if m := mode(t, first); m != os.ModeDir|0o700 || len(first)+socketRoom >= maxSocket || filepath.Dir(first) != temp {
		t.Errorf("%s: %v", first, m)
	}
	if got, err := runtimeDir(long+"/a", "/nowhere", temp); err != nil || got != first {
		t.Errorf("the first temp directory is missing: %s, %v", got, err)
	}
	if _, err := runtimeDir(long+"/a", long); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("no short directory: %v", err)
	}

	// Another user has created it.
	if err := os.Chmod(first, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := runtimeDir(long+"/a", temp); err == nil || !strings.Contains(err.Error(), "mode 0777 instead of 0700") {
		t.Errorf("an open directory is used: %v", err)
	}
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, first); err != nil {
		t.Fatal(err)
	}
	if _, err := runtimeDir(long+"/a", temp); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("a link is followed: %v", err)
	}
	if os.Geteuid() == 0 {
		if err := os.Remove(first); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(first, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(first, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if _, err := runtimeDir(long+"/a", temp); err == nil || !strings.Contains(err.Error(), "another user (id 12345)") {
			t.Errorf("another user's directory is used: %v", err)
		}
	}
}
