package tasks

import "strings"

// prompts caches the newest prompts of unfinished tasks, by id.
type prompts struct {
	texts map[string]string
	size  int
}

// maxPrompts bounds the cached text, in bytes.
const maxPrompts = 1 << 20

func (t *tasks) keepPrompt(id, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.prompts.size+len(text) > maxPrompts {
		t.prompts = prompts{texts: map[string]string{}}
	}
	t.prompts.texts[id] = text
	t.prompts.size += len(text)
}

func (t *tasks) forgetPrompt(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prompts.size -= len(t.prompts.texts[id])
	delete(t.prompts.texts, id)
}

// prompt returns the prompt of a task.
func (c *change) prompt(id string) (string, error) {
	c.mu.Lock()
	text, kept := c.prompts.texts[id]
	c.mu.Unlock()
	if kept {
		return text, nil
	}
	stored, err := readOrNew[string](c, promptPrefix+id)
	if err != nil {
		return "", err
	}
	return *stored, nil
}

// maxPreview is the length of a preview in characters.
const maxPreview = 60

// preview returns the first line of a prompt, shortened.
func preview(prompt string) string {
	line, more, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	letters := []rune(strings.Join(strings.Fields(line), " "))
	switch {
	case len(letters) > maxPreview:
		return string(letters[:maxPreview-1]) + "…"
	case more != "":
		return string(letters) + " …"
	}
	return string(letters)
}
