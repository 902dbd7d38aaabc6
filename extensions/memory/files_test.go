package memory

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/memory/item"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

// withFile starts the extension with a file that it may use, and returns its reference.
func withFile(t *testing.T) (b *bench, hash string) {
	t.Helper()
	b = setup(t)
	b.Lose()
	x := build(b.clock)
	start := x.Start
	x.Start = func(ctx context.Context, k *sdk.Kernel) error {
		blob, err := k.PutBlob(ctx, strings.NewReader("a cat"))
		hash = blob.Hash
		return errors.Join(err, start(ctx, k))
	}
	b.Restart(x)
	return b, hash
}

func TestMemoryHasAFile(t *testing.T) {
	t.Parallel()
	b, hash := withFile(t)
	reference := "[image " + hash[:6] + ": cat.jpg]"
	full := "[image " + hash + ": cat.jpg]"
	got := b.remember(fields{"text": "Rex is our cat", "attachments": []string{full, full}})
	if !slices.Equal(got.Files, []string{reference}) {
		t.Errorf("remembered %q", got.Files)
	}
	if all := b.MustCall("list_memories", fields{}); !strings.Contains(all, "with "+reference) {
		t.Errorf("the list is %s", all)
	}
	context := b.Ask("relevant", fields{"query": "who is Rex?"}).GetContent()
	if !strings.Contains(context, "with "+reference) || !strings.Contains(context, "recall it") {
		t.Errorf("the context is %s", context)
	}
	// A change keeps it, unless it says otherwise.
	if got := b.remember(fields{"id": got.ID, "text": "Rex is a cat of ours"}); len(got.Files) != 1 {
		t.Errorf("after a change: %q", got.Files)
	}
	if got := b.remember(fields{"id": got.ID, "attachments": []string{}}); len(got.Files) != 0 || got.Status != "updated" {
		t.Errorf("after its removal: %q, %s", got.Files, got.Status)
	}
	for reference, want := range map[string]string{"cat.jpg": "is no file", strings.Repeat("f", 64): "there is no file"} {
		b.refuses("remember", fields{"text": "more", "attachments": []string{reference}}, want)
	}
	var many []string
	for range item.MaxFiles + 1 {
		many = append(many, full)
	}
	b.remember(fields{"text": "the same one many times", "attachments": many})
}

// An agent attaches files of its session only: another person's that memory keeps are found
// by no digits of their hashes.
func TestNoFilesOfOthersByTheirHashes(t *testing.T) {
	t.Parallel()
	b, hash := withFile(t)
	b.remember(fields{"text": "her diary", "attachments": []string{hash}})
	for _, digits := range []string{hash, hash[:63], hash[:6]} {
		f := fields{"text": "mine", "attachments": []string{"[image " + digits + ": x.jpg]"}}
		if r, err := b.TryCall(t.Context(), "remember", f, by(boris), as("chat", "personal")); err != nil || !r.GetIsError() {
			t.Errorf("with %d digits: %s, %v", len(digits), r.GetContent(), err)
		}
	}
	b.MustCall("import_memories", fields{"text": "- mine\n  - file: [image " + hash + ": x.jpg]"}, by(boris), as("chat", "personal"))
	if all := b.MustCall("list_memories", fields{}, by(boris)); strings.Contains(all, "x.jpg") {
		t.Errorf("boris has %s", all)
	}
}

// A call of an agent brings the file into its session; a person gets the names.
func TestRecallBringsTheFile(t *testing.T) {
	t.Parallel()
	b, hash := withFile(t)
	b.remember(fields{"text": "Rex is our cat", "attachments": []string{hash}})
	for name, options := range map[string][]sdktest.CallOption{"an agent": {as("chat", "personal")}, "the owner": nil} {
		for tool, f := range map[string]fields{"recall": {"query": "cat"}, "list_memories": {}} {
			if got := b.MustCall(tool, f, options...); !strings.Contains(got, "[document "+hash[:6]+"]") {
				t.Errorf("%s, %s: %s", tool, name, got)
			}
		}
	}
}

func TestFilesInADocument(t *testing.T) {
	t.Parallel()
	b, hash := withFile(t)
	full := "[image " + hash + ": cat.jpg]"
	first := b.remember(fields{"text": "Rex is our cat", "attachments": []string{full}})
	doc := b.MustCall("export_memories", fields{})
	if !strings.Contains(doc, "  - file: "+full+"\n") {
		t.Fatalf("the document is %s", doc)
	}
	check := func(what, doc string, want string, files int) {
		t.Helper()
		got := decode[imported](t, b.MustCall("import_memories", fields{"text": doc}))
		if !strings.HasPrefix(got.Text, want) {
			t.Errorf("%s: %s", what, got.Text)
		}
		all := decode[listing](t, b.MustCall("list_memories", fields{}))
		if len(all.Memories) != 1 || len(all.Memories[0].Files) != files {
			t.Errorf("%s: there are %+v", what, all.Memories)
		}
	}
	check("as exported", doc, "added 0, updated 0, unchanged 1", 1)
	check("without the line", strings.Replace(doc, "  - file: "+full+"\n", "", 1), "added 0, updated 0, unchanged 1", 1)
	b.MustCall("forget", fields{"ids": []string{first.ID}})
	check("after it was forgotten", doc, "added 1", 1) // it is held for a while
	b.MustCall("forget", fields{"ids": []string{first.ID}})
	check("of another home", strings.ReplaceAll(doc, hash, strings.Repeat("ab", 32)),
		"added 1, updated 0, unchanged 0, forgotten 0; 1 files were left out", 0)
	b.refuses("import_memories", fields{"text": "- a\n  - file: cat.jpg\n- b\n  - file: 3f2a9c"},
		"write its whole hash")
}

// The stored value keeps the files, and its deletion releases them.
func TestStoredMemoryKeepsItsFiles(t *testing.T) {
	t.Parallel()
	b, hash := withFile(t)
	got := b.remember(fields{"text": "Rex is our cat", "attachments": []string{hash}})
	if !b.Keeps(rowKey(got.ID), hash) {
		t.Error("the memory does not keep it")
	}
	b.remember(fields{"id": got.ID, "kind": "preference"})
	if !b.Keeps(rowKey(got.ID), hash) {
		t.Error("after a change the memory does not keep it")
	}
	b.MustCall("forget", fields{"ids": []string{got.ID}})
	if b.Keeps(rowKey(got.ID), hash) {
		t.Error("what was forgotten keeps it")
	}
}
