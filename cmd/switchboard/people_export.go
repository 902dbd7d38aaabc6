package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
	"github.com/switchboard-run/switchboard/store/blobfiles"
)

func newPeopleExport() *cobra.Command {
	c := &cobra.Command{
		Use: "export NAME [DIR]", Short: "Write everything that is a person's to a directory", Args: cobra.RangeArgs(1, 2),
		Long: "Writes what is a person's, and nothing of others, to a directory: person.json (accounts, role, settings),\n" +
			"conversations/ (each private one as Markdown, with its files), memories.md with its files,\n" +
			"schedules.json and tasks.json. The directory must be new or empty; without DIR it is named after the\n" +
			"person and the day. NAME is a name, an account (channel/user) or an id.",
		Example: "  switchboard people export Boris\n  switchboard people export Boris ~/boris",
		ValidArgsFunction: func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return first(peopleNames)(c, args, begun)
		},
	}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("export", func(c *cobra.Command, k *admin.Client, args []string) error {
		home, err := findHome()
		if err != nil {
			return err
		}
		x, err := personNamed(c.Context(), k, args[0])
		if err != nil {
			return err
		}
		dir := fileName(nameOf(x)) + "-" + time.Now().In(printerOf(c).zone).Format(time.DateOnly)
		if len(args) == 2 {
			dir = args[1]
		}
		if dir, err = newDirectory(dir); err != nil {
			return err
		}
		e := &export{
			ctx: c.Context(), k: k, p: printerOf(c), person: x, files: blobfiles.Dir(home.Files()), dir: dir,
			Dir: dir, Missing: []string{},
		}
		for _, step := range []func() error{e.about, e.conversations, e.memories, e.schedules, e.tasks} {
			if err := step(); err != nil {
				return fmt.Errorf("%w; what was written until then is in %s", err, dir)
			}
		}
		if *asJSON {
			return printJSON(c, e)
		}
		e.p.line("%s: %s.", nameOf(x), belongings{
			Conversations: e.Conversations, Memories: e.Memories, Schedules: e.Schedules, Tasks: e.Tasks,
		})
		e.p.line("Written to %s", dir)
		if len(e.Missing) > 0 {
			e.p.line("%s no longer stored: %s", plural(len(e.Missing), "file is", "files are"), strings.Join(e.Missing, ", "))
		}
		return nil
	})
	return c
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// newDirectory makes a directory for one user alone, unless it is there and empty.
func newDirectory(name string) (string, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(path, 0o700); err == nil || !errors.Is(err, os.ErrExist) {
		if err != nil {
			err = fmt.Errorf("make the directory: %w", err)
		}
		return path, err
	}
	found, err := os.ReadDir(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("read the directory: %w", err)
	case len(found) > 0:
		return "", fmt.Errorf("%s is not empty: choose another directory", path)
	}
	return path, nil
}

// fileName makes a name of a file from a text.
func fileName(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '.' || r == '_' {
			return unicode.ToLower(r)
		}
		return '-'
	}, s)
	if r := []rune(s); len(r) > 60 {
		s = string(r[len(r)-60:]) // the end has the extension
	}
	return cmp.Or(strings.Trim(s, "-."), "unnamed")
}

// export writes everything that is a person's.
type export struct {
	ctx    context.Context
	k      *admin.Client
	p      *printer
	person *adminv1.Person
	files  blobfiles.Dir
	dir    string

	Dir           string   `json:"directory"`
	Conversations int      `json:"conversations"`
	Memories      int      `json:"memories"`
	Schedules     int      `json:"schedules"`
	Tasks         int      `json:"tasks"`
	Files         int      `json:"files"`
	Missing       []string `json:"missing_files"`
}

// write writes a file of the directory.
func (e *export) write(name string, data []byte) error {
	path := filepath.Join(e.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func (e *export) json(name string, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(asJSON(v)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return e.write(name, b.Bytes())
}

func (e *export) about() error {
	return e.json("person.json", admin.JSON(e.person).With("exported_at", time.Now().UTC().Format(time.RFC3339)))
}

func (e *export) conversations() error {
	sessions, err := sessionsOf(e.ctx, e.k, e.person)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		t, err := readTranscript(e.ctx, e.k, s.Id)
		if errors.Is(err, contract.ErrNotFound) { // deleted meanwhile
			continue
		}
		if err != nil {
			return fmt.Errorf("read the conversation %s: %w", s.Id, err)
		}
		var b bytes.Buffer
		if err := e.p.markdown(&b, t); err != nil {
			return err
		}
		name := filepath.Join("conversations", s.Id+"-"+fileName(place(t.NamedSession)))
		for _, row := range t.entries {
			for _, a := range row.Attachments {
				if err := e.file(name+"-files", a.Blob, a.Name); err != nil {
					return err
				}
			}
		}
		if err := e.write(name+".md", b.Bytes()); err != nil {
			return err
		}
	}
	e.Conversations = conversations(sessions)
	return nil
}

// file copies a file of a message, whose references begin with the same digits.
func (e *export) file(dir, hash, name string) error {
	name = filepath.Join(dir, hash[:min(len(hash), contract.ReferenceDigits)]+"-"+fileName(name))
	if _, err := os.Lstat(filepath.Join(e.dir, name)); err == nil {
		return nil // the conversation has it twice
	}
	f, err := e.files.Open(hash)
	if errors.Is(err, os.ErrNotExist) {
		e.Missing = append(e.Missing, name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the file %s: %w", name, err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return fmt.Errorf("read the file %s: %w", name, err)
	}
	e.Files++
	return e.write(name, data)
}

// namedFile is a reference of a document of memories: [photo <hash>: name].
var namedFile = regexp.MustCompile(`\[[a-z ]+ ([0-9a-f]{64})(?:: ([^\]]*))?\]`)

func (e *export) memories() error {
	document, err := tool(e.ctx, e.k, &adminv1.CallToolRequest{
		Name: exportMemories, Arguments: []byte(`{}`), Person: e.person.Id,
	})
	if err != nil {
		return fmt.Errorf("read the memories: %w", err)
	}
	for _, m := range namedFile.FindAllStringSubmatch(document, -1) {
		if err := e.file("memories-files", m[1], m[2]); err != nil {
			return err
		}
	}
	found, err := callToolOf[memoryList](e.ctx, e.k, e.person.Id, listMemories, map[string]any{"limit": memoryPage})
	if err != nil {
		return fmt.Errorf("read the memories: %w", err)
	}
	e.Memories = len(found.Memories) + found.More
	return e.write("memories.md", []byte(document))
}

func (e *export) schedules() error {
	found, err := schedulesOf(e.ctx, e.k, e.person.Id, true)
	if err == nil && found.More > 0 {
		err = fmt.Errorf("there are %d more than can be read at once", found.More)
	}
	if err != nil {
		return fmt.Errorf("read the schedules: %w", err)
	}
	e.Schedules = len(found.Schedules)
	return e.json("schedules.json", append([]schedule{}, found.Schedules...))
}

func (e *export) tasks() error {
	found, more, err := tasksOf(e.ctx, e.k, e.person.Id, true)
	if err == nil && more > 0 {
		err = fmt.Errorf("there are %d more than can be read at once", more)
	}
	if err != nil {
		return fmt.Errorf("read the tasks: %w", err)
	}
	slices.SortFunc(found, func(a, b task) int { return a.CreatedAt.Compare(b.CreatedAt) })
	for i := range found {
		whole, err := callToolOf[task](e.ctx, e.k, e.person.Id, showTask, map[string]any{"id": found[i].ID})
		if err != nil {
			return fmt.Errorf("read the task %s: %w", found[i].Name, err)
		}
		found[i] = whole
	}
	e.Tasks = len(found)
	return e.json("tasks.json", append([]task{}, found...))
}
