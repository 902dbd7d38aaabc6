package wire

import (
	"crypto/rand"
	"strings"
)

// NewID returns a unique id of twelve letters and digits.
func NewID() string { return strings.ToLower(rand.Text()[:12]) }
