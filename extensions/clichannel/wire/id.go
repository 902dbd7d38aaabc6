package wire

import (
	"crypto/rand"
	"strings"
)

// NewID returns an id that nothing else has: twelve letters and digits.
func NewID() string { return strings.ToLower(rand.Text()[:12]) }
