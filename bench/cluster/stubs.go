package main

import "math/rand/v2"

func commits(*run, *rand.Rand) error   { return nil }
func speed(*run, *rand.Rand) error     { return nil }
func takeovers(*run, *rand.Rand) error { return nil }
func joining(*run, *rand.Rand) error   { return nil }
