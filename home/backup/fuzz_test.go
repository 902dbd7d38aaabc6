package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// FuzzVerify: any file is refused or described; nothing is written outside of the
// directory to unpack it in, and nothing stays there.
func FuzzVerify(f *testing.F) {
	archive := func(members ...string) []byte {
		var b bytes.Buffer
		out := tar.NewWriter(&b)
		for i := 0; i < len(members); i += 2 {
			h := &tar.Header{Name: members[i], Mode: 0o600, Size: int64(len(members[i+1]))}
			if members[i+1] == "@" {
				h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, "/etc/passwd", 0
			}
			if err := out.WriteHeader(h); err != nil {
				f.Fatal(err)
			}
			if h.Size > 0 {
				_, _ = io.WriteString(out, members[i+1])
			}
		}
		_ = out.Close()
		return b.Bytes()
	}
	f.Add(archive(aboutName, "{}", sumsName, "0  x\n"), true)
	f.Add(archive("../outside", "x"), true)
	f.Add(archive("/outside", "x"), true)
	f.Add(archive(partData+"/../../outside", "x"), true)
	f.Add(archive(partData+"/link", "@", partData+"/link/file", "x"), true)
	f.Add(archive(aboutName, `{"events": -1`, aboutName, "twice"), true)
	f.Add([]byte("SQLite format 3\x00 and nothing behind it"), false)
	f.Add([]byte("\x1f\x8b"), false)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, content []byte, compress bool) {
		if compress { // else the checksum of the compression refuses most inputs
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, _ = z.Write(content)
			_ = z.Close()
			content = b.Bytes()
		}
		top := t.TempDir()
		file, work := filepath.Join(top, "file"), filepath.Join(top, "work")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = Verify(t.Context(), file, work)
		var found []string
		_ = filepath.WalkDir(top, func(path string, _ os.DirEntry, err error) error {
			if err == nil && path != top && path != file && path != work {
				found = append(found, path)
			}
			return err
		})
		if len(found) > 0 {
			t.Errorf("these are left: %q", found)
		}
	})
}
